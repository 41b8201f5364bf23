# Strong and weak scaling of training on the ranks of a job; jobs/lib.sh is sourced before.
#
# Strong: the same work on P = 1, 2, 4, ... ranks, and on all. Its digests must be equal. Weak: the
# length that an example may have grows with P, up to data.max_length on all ranks. A measurement
# is a short run; its first step, which still faults in memory, doesn't count.
#   RFA_REPEATS        measurements of each kind and P (3)
#   RFA_SCALING_STEPS  steps of each (10)

# scaling_key CONFIG KEY DEFAULT [options]: section.key as the options or else the file set it.
scaling_key()
{
    local config=$1 key=$2 value=$3 word found
    found=$(awk -v section="${key%%.*}:" -v name="${key#*.}:" '
        /^[^ #]/ { inside = $1 == section } inside && /^ / && $1 == name { print $2 }' "$config")
    value=${found:-$value}
    shift 3
    for word in "$@"; do
        case ${word#--set=} in
        "$key="*) value=${word##*=} ;;
        esac
    done
    echo "$value"
}

# Numbers of one step array of a run, without the first step.
scaling_column()
{
    sed -n "s/.*\"steps\":{[^}]*\"$2\":\[\([^]]*\)\].*/\1/p" <<<"$1" | tr ',' '\n' | tail -n +2
}

# scaling_measure RUN: "tokens/s, share of the time in the exchange" of all its steps but the first.
scaling_measure()
{
    local json
    json=$("${job_program[@]}" inspect "$1" --json </dev/null)
    paste <(scaling_column "$json" tokens_per_second) <(scaling_column "$json" seconds) \
        <(scaling_column "$json" exchange_wait) |
        awk '{ tokens += $1 * $2; seconds += $2; wait += $3 }
            END { if (!seconds) exit 1; printf "%.1f %.4f\n", tokens / seconds, wait / seconds }'
}

# scaling_point KIND P LENGTH CONFIG [options]: its repeats; adds a line to $scaling_csv.
scaling_point()
{
    local kind=$1 ranks=$2 length=$3 config=$4 run digest='' code=0 measured='' line nodes
    shift 4
    for _ in $(seq "${RFA_REPEATS:-3}"); do
        run=$scaling_folder/$kind-$ranks.h5
        job_launch "$ranks" "${job_program[@]}" train "$config" \
            --set "train.steps=${RFA_SCALING_STEPS:-10}" --set train.evaluate_every=0 \
            --set train.evaluate_examples=1 --set train.checkpoint_every=0 \
            --set "parallel.threads=$job_threads" --set "parallel.segments=$scaling_segments" "$@" \
            --set "data.max_length=$length" --out "$run" --overwrite \
            >"$run.out" 2>"$run.err" || code=$?
        if [ "$code" != 0 ]; then
            cat "$run.err" >&2
            return "$code"
        fi
        line=$(scaling_measure "$run") || return 1
        measured+=$line$'\n'
        line=$(sed -n 's/^digest //p' "$run.out")
        line=${line:-none}
        if [ -n "$digest" ] && [ "$digest" != "$line" ]; then
            job_say "$kind, $ranks ranks: digests $digest and $line of the same run differ"
            return 1
        fi
        digest=$line
    done
    nodes=$(((ranks * job_nodes + job_ranks - 1) / job_ranks))
    sort -n <<<"${measured%$'\n'}" | awk -v kind="$kind" -v ranks="$ranks" -v nodes="$nodes" \
        -v threads="$job_threads" -v length_="$length" -v digest="$digest" '
        function median(v, n) { return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }
        { rate[NR] = $1; for (i = NR; i > 1 && wait[i - 1] > $2; i--) wait[i] = wait[i - 1]; wait[i] = $2 }
        END { printf "%s,%d,%d,%d,%d,%.1f,%.1f,%.4f,%s\n", kind, ranks, nodes, threads, length_,
            rate[1], median(rate, NR), median(wait, NR), digest }' >>"$scaling_csv"
}

# The table and the final CSV, with speed-up and efficiency against the first P of the kind.
scaling_table()
{
    awk -F , -v out="$1" '
        BEGIN {
            printf "%-6s %5s %5s %7s %8s %12s %12s %8s %10s %8s  %s\n", "kind", "ranks", "nodes", \
                "threads", "length", "tokens/s min", "median", "speed-up", "efficiency", "exchange", "digest"
            print "kind,ranks,nodes,threads,max_length,tokens_per_second_min,tokens_per_second_median," \
                "speedup,efficiency,exchange_share,digest" >out
        }
        {
            if (!($1 in base)) { base[$1] = $7; least[$1] = $2 }
            speedup = $7 / base[$1]; efficiency = speedup * least[$1] / $2
            printf "%-6s %5d %5d %7d %8d %12.0f %12.0f %8.2f %9.0f%% %7.1f%%  %s\n", $1, $2, $3, $4, $5, \
                $6, $7, speedup, 100 * efficiency, 100 * $8, $9
            printf "%s,%d,%d,%d,%d,%s,%s,%.4f,%.4f,%s,%s\n", $1, $2, $3, $4, $5, $6, $7, speedup, \
                efficiency, $8, $9 >out
        }' "$scaling_csv"
}

# scaling CONFIG [options of rfa train]: prints the table and writes runs/scaling-<job>.csv.
scaling()
{
    local config=$1 kind ranks length full series=() code=0 digests
    shift
    full=$(scaling_key "$config" data.max_length 2000 "$@")
    for ((ranks = 1; ranks < job_ranks; ranks *= 2)); do
        series+=("$ranks")
    done
    series+=("$job_ranks")
    # One segment a rank at least, and the same number for all P: the digest depends on it.
    scaling_segments=$(scaling_key "$config" parallel.segments 8 "$@")
    while [ "$scaling_segments" -lt "$job_ranks" ]; do
        scaling_segments=$((2 * scaling_segments))
    done
    mkdir -p runs
    scaling_folder=$(mktemp -d "runs/scaling-$job_id.XXXXXX")
    scaling_csv=$scaling_folder/lines
    for kind in strong weak; do
        for ranks in "${series[@]}"; do
            length=$full
            [ "$kind" = strong ] || length=$(((full * ranks + job_ranks - 1) / job_ranks))
            [ "$code" != 0 ] || scaling_point "$kind" "$ranks" "$length" "$config" "$@" || code=$?
        done
    done
    if [ -s "$scaling_csv" ]; then
        scaling_table "runs/scaling-$job_id.csv"
        digests=$(awk -F , '$1 == "strong" { print $9 }' "$scaling_csv" | sort -u | wc -l)
        if [ "$code" = 0 ] && [ "$digests" != 1 ]; then
            job_say "strong scaling has $digests digests, not one: the results depend on the rank count"
            code=1
        fi
    fi
    rm -rf "$scaling_folder"
    return "$code"
}
