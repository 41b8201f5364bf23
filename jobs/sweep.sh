#!/usr/bin/env bash
# Many runs of one configuration, one a line of a sweep file.
#
#   bash jobs/sweep.sh list   CONFIG SWEEP                   the runs that it stands for
#   bash jobs/sweep.sh submit CONFIG SWEEP [sbatch options]  a job array of those not finished, and
#                                                            a job after it that reports
#   bash jobs/sweep.sh report CONFIG SWEEP                   all of them, the best one, what failed
#
# A line holds settings, key=value with blanks between; values with commas stand for all
# combinations; # begins a comment. This line is four runs:
#
#   train.seed=1,2 attention.kind=rfa,softmax
#
# A run is runs/<CONFIG>-<SWEEP>/<its settings>.h5, so lines may be added, moved or removed without
# touching the runs of the others. RFA_AT_ONCE=K: at most K of them run at the same time.
# Without SLURM: bash jobs/local.sh sweep CONFIG SWEEP.
set -euo pipefail
sweep_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

sweep_die()
{
    echo "sweep: $1" >&2
    exit 2
}

sweep_base()
{
    local name=${1##*/}
    echo "${name%.*}"
}

# runs/<CONFIG>-<SWEEP>
sweep_folder()
{
    echo "runs/$(sweep_base "$1")-$(sweep_base "$2")"
}

# sweep_expand DONE WORDS...: all combinations, one a line, each word behind DONE.
sweep_expand()
{
    local done=$1 key value
    shift
    if [ $# = 0 ]; then
        echo "${done# }"
        return
    fi
    key=${1%%=*}
    local values
    IFS=, read -r -a values <<<"${1#*=}"
    for value in "${values[@]}"; do
        sweep_expand "$done $key=$value" "${@:2}"
    done
}

# The lines of a sweep file as single runs; keys in alphabetical order, so that their order in the
# file makes no other run.
sweep_lines()
{
    local text word number=0 words
    [ -r "$1" ] || sweep_die "can't read $1"
    while IFS= read -r text || [ -n "$text" ]; do
        number=$((number + 1))
        read -r -a words <<<"${text%%#*}"
        [ ${#words[@]} -gt 0 ] || continue
        for word in "${words[@]}"; do
            [[ $word =~ ^[a-z_]+\.[a-z0-9_]+=[^,]+(,[^,]+)*$ ]] ||
                sweep_die "$1:$number: '$word' is not section.key=value or ...=value,value"
        done
        text=$(printf '%s\n' "${words[@]%%=*}" | sort | uniq -d)
        [ -z "$text" ] || sweep_die "$1:$number: $text is there twice"
        mapfile -t words < <(printf '%s\n' "${words[@]}" | LC_ALL=C sort)
        sweep_expand '' "${words[@]}"
    done <"$1"
}

# sweep_name SETTINGS: the run's file without folder and ending. Long ones end in a checksum.
sweep_name()
{
    local name=${1// /,}
    name=${name//\//_}
    if [ ${#name} -gt 160 ]; then
        name=${name:0:140}-$(cksum <<<"$1" | cut -d ' ' -f 1)
    fi
    echo "$name"
}

# RUN <tab> SETTINGS, a line a run; two lines for the same file are an error.
sweep_list()
{
    local folder settings lines list='' twice
    [ -r "$1" ] || sweep_die "can't read $1"
    folder=$(sweep_folder "$1" "$2")
    lines=$(sweep_lines "$2") # a variable: its errors end the script
    [ -n "$lines" ] || sweep_die "$2 has no line with settings"
    while IFS= read -r settings; do
        list+="$folder/$(sweep_name "$settings").h5"$'\t'"$settings"$'\n'
    done <<<"$lines"
    twice=$(cut -f 1 <<<"${list%$'\n'}" | sort | uniq -d | head -n 1)
    [ -z "$twice" ] || sweep_die "$2: more than one line stands for $twice"
    printf '%s' "$list"
}

# sweep_run CONFIG RUN SETTINGS: one of them, by the functions of lib.sh. What failed leaves a note
# beside its run.
sweep_run()
{
    local config=$1 run=$2 word options=() code=0
    for word in $3; do
        options+=(--set "$word")
    done
    mkdir -p "$(dirname "$run")"
    job_say "$run"
    job_train "$config" "${options[@]}" --out "$run" || code=$?
    if [ "$code" = 0 ] || [ "$code" = 85 ]; then
        rm -f "${run%.h5}.failed"
    else
        echo "exit code $code in job $job_id, $(date '+%F %T')" >"${run%.h5}.failed"
    fi
    return "$code"
}

# sweep_report LIST: the text of sweep_list.
sweep_report()
{
    local python
    for python in "${RFA_PYTHON:-}" python3 /usr/bin/python3 "$sweep_top/build/python/bin/python"; do
        if [ -n "$python" ] && "$python" -c 'import h5py' 2>/dev/null; then
            "$python" "$sweep_top/jobs/sweep_report.py" <<<"$1"
            return
        fi
    done
    sweep_die "the report needs a Python with h5py: RFA_PYTHON"
}

# The array gets a copy of the list: the sweep file may change while jobs wait.
sweep_submit()
{
    local config=$1 sweep=$2 list copy run left='' count=0 number=0 array sbatch
    shift 2
    case " $* " in
    *' --array'* | *' -a'*) sweep_die "the array is what is not finished; RFA_AT_ONCE=K limits it" ;;
    esac
    list=$(sweep_list "$config" "$sweep")
    copy=$(sweep_folder "$config" "$sweep")
    mkdir -p "$copy"
    copy+=/$(cksum <<<"$list" | cut -d ' ' -f 1).list
    printf '%s\n' "$list" >"$copy"
    while IFS=$'\t' read -r run _; do
        number=$((number + 1))
        if [ "$(job_state "$run")" != finished ]; then
            left+=,$number
            count=$((count + 1))
        fi
    done <<<"$list"
    echo "sweep: $number runs, $((number - count)) finished"
    [ "$count" -gt 0 ] || return 0
    sbatch=(sbatch --parsable)
    array=$("${sbatch[@]}" --array="${left#,}${RFA_AT_ONCE:+%$RFA_AT_ONCE}" "$@" \
        "$sweep_top/jobs/sweep.sbatch" "$config" "$copy")
    echo "sweep: job array ${array%%;*}: $count runs"
    # After the options of the array, which may name a partition or an account, its own size.
    array=$("${sbatch[@]}" "$@" --job-name=rfa-sweep-report --output=%x-%j.log --time=10 \
        --nodes=1 --ntasks=1 --ntasks-per-node=1 --cpus-per-task=1 \
        --dependency="afterany:${array%%;*}" "$sweep_top/jobs/sweep.sbatch" --report "$copy")
    echo "sweep: job ${array%%;*} reports when they have ended"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    verb=${1:-}
    [ $# -ge 3 ] || sweep_die "usage: bash jobs/sweep.sh list|submit|report CONFIG SWEEP"
    shift
    case $verb in
    list) sweep_list "$@" ;;
    report)
        list=$(sweep_list "$@")
        sweep_report "$list"
        ;;
    submit)
        . "$sweep_top/jobs/lib.sh"
        job_find_program
        sweep_submit "$@"
        ;;
    *) sweep_die "no '$verb': list, submit or report" ;;
    esac
fi
