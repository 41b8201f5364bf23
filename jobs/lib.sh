# What the job scripts have in common, under SLURM and on one machine: how ranks are started, how a
# warning reaches them, when a run goes on and when it is put back into the queue. To be sourced.
#
# Set by the user, all optional:
#   RFA                program (build/release/rfa of this tree)
#   RFA_CONTAINER      an Apptainer image to run `rfa` from instead
#   RFA_LAUNCHER       srun or mpirun (srun when it offers PMIx, else mpirun)
#   RFA_BIND           cores or none (srun: cores; mpirun: none)
#   RFA_MAX_RESTARTS   how often a stopped job goes on by itself (20)
#   RFA_STAGE          1: the data set is copied once to each node's $SLURM_TMPDIR or $TMPDIR first
#   RFA_RANKS          ranks without SLURM (2)
# Exported to the program: OMP_NUM_THREADS, OPENBLAS_NUM_THREADS, RFA_END_TIME (Unix seconds).
job_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
job_signals=0   # how many warnings have come
job_child=      # the launcher that is running
job_reminder=   # what repeats the warning to it
job_staged=     # the folder of the staged data set

job_say()
{
    echo "job: $*" >&2
}

job_die()
{
    job_say "$1"
    exit "${2:-2}"
}

# Any signal means: stop at the next step, with a checkpoint. SIGUSR1 is what mpirun and srun both
# pass on to all ranks; SIGTERM would make mpirun kill them. Ranks that are just starting don't
# listen yet, so it is said again and again. The third signal is meant seriously.
job_on_signal()
{
    job_signals=$((job_signals + 1))
    job_say "SIG$1: asking the ranks to stop with a checkpoint"
    if [ -n "$job_child" ] && [ -z "$job_reminder" ]; then
        (while kill -s USR1 "$job_child"; do sleep 5; done) >/dev/null 2>&1 &
        job_reminder=$!
    fi
    if [ -n "$job_child" ] && [ "$job_signals" -ge 3 ]; then
        kill -s TERM "$job_child" 2>/dev/null || true
    fi
}
for job_signal in USR1 USR2 TERM INT; do
    # shellcheck disable=SC2064
    trap "job_on_signal $job_signal" "$job_signal"
done

# job_count 1 rank: "1 rank"
job_count()
{
    echo "$1 $2$([ "$1" = 1 ] || echo s)"
}

job_under_slurm()
{
    [ -n "${SLURM_JOB_ID:-}" ] && [ "${job_local:-no}" = no ]
}

# Unix seconds of the job's end; nothing without a limit. SLURM before 23.02 doesn't export it.
job_end_time()
{
    local end=${SLURM_JOB_END_TIME:-}
    if [ -z "$end" ]; then
        end=$(squeue -h -j "$job_id" -o %e 2>/dev/null | head -n 1)
        [ -n "$end" ] && end=$(date -d "$end" +%s 2>/dev/null) || end=
    fi
    echo "$end"
}

job_find_launcher()
{
    if [ -n "${RFA_LAUNCHER:-}" ]; then
        job_launcher=$RFA_LAUNCHER
    elif job_under_slurm && srun --mpi=list 2>&1 | grep -qw pmix; then
        job_launcher=srun
    else
        job_launcher=mpirun
    fi
    case $job_launcher in
    srun | mpirun) ;;
    *) job_die "RFA_LAUNCHER is '$job_launcher', not srun or mpirun" ;;
    esac
    command -v "$job_launcher" >/dev/null ||
        job_die "nothing can start the ranks: srun offers no PMIx, and mpirun is not in PATH" \
            "(module load openmpi?)"
}

job_find_program()
{
    if [ -n "${RFA_CONTAINER:-}" ]; then
        job_program=(apptainer exec "$RFA_CONTAINER" rfa)
    else
        job_program=("${RFA:-$job_top/build/release/rfa}")
        [ -x "${job_program[0]}" ] || job_die "${job_program[0]} is missing: bash jobs/setup.sh &&" \
            "cmake --preset release && cmake --build --preset release"
    fi
}

# Finds out about the job, sets what its ranks need and says so. Every script calls it first.
job_begin()
{
    local end=''
    if job_under_slurm; then
        # Of one task of an array, never of the whole array.
        job_id=${SLURM_ARRAY_JOB_ID:+${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID}
        job_id=${job_id:-$SLURM_JOB_ID}
        job_ranks=${SLURM_NTASKS:-$SLURM_JOB_NUM_NODES}
        job_nodes=$SLURM_JOB_NUM_NODES
        job_threads=${SLURM_CPUS_PER_TASK:-1}
        job_restarts=${SLURM_RESTART_COUNT:-0}
        export OMP_NUM_THREADS=$job_threads OPENBLAS_NUM_THREADS=1
        end=$(job_end_time)
        unset RFA_END_TIME # of the shell that submitted
        [ -z "$end" ] || export RFA_END_TIME=$end
    else
        job_id=$$ end=${RFA_END_TIME:-}
        job_ranks=${RFA_RANKS:-2} job_nodes=1 job_restarts=0
        job_threads=${OMP_NUM_THREADS:-1}
        export OMP_NUM_THREADS=$job_threads OPENBLAS_NUM_THREADS=1
    fi
    job_find_program
    job_find_launcher
    if [ "$job_launcher" = srun ]; then
        job_bind=${RFA_BIND:-cores}
    else
        job_bind=${RFA_BIND:-none}
    fi
    job_say "$job_id, start $((job_restarts + 1)): $(job_count "$job_ranks" rank) on" \
        "$(job_count "$job_nodes" node) by $job_launcher," \
        "$(job_count "$job_threads" thread) a rank, bound to $job_bind," \
        "$(if [ -n "$end" ]; then date -d "@$end" '+ends at %F %T'; else echo no time limit; fi)"
    trap job_clean EXIT
}

# The launcher's words for RANKS ranks, or for one on each of RANKS nodes.
job_launch_words()
{
    local ranks=$1 spread=$2 nodes=$job_nodes per_node
    per_node=$(((job_ranks + job_nodes - 1) / job_nodes))
    if [ "$spread" = no ] && [ "$ranks" -lt "$job_ranks" ]; then
        nodes=$(((ranks + per_node - 1) / per_node)) # no more nodes than needed
    fi
    if [ "$job_launcher" = srun ]; then
        # From 22.05 to 23.02 srun doesn't take over --cpus-per-task of the job.
        job_words=(srun --mpi=pmix --kill-on-bad-exit=1 --nodes="$nodes" --ntasks="$ranks"
            --cpus-per-task="$job_threads" --cpu-bind="$job_bind")
        [ "$spread" = no ] || job_words+=(--ntasks-per-node=1)
    else
        # 20 s after SIGTERM, which scancel sends to mpirun too, before the ranks are killed; a
        # node that has gone is noticed after 35 s, not after hours.
        job_words=(mpirun -q -n "$ranks" --mca odls_base_sigkill_timeout 20
            --mca oob_tcp_keepalive_time 20 --mca oob_tcp_keepalive_intvl 5
            --mca oob_tcp_keepalive_probes 3)
        if [ "$spread" = yes ]; then
            job_words+=(--map-by ppr:1:node --bind-to none)
        elif [ "$job_bind" = none ]; then
            job_words+=(--bind-to none)
        else
            job_words+=(--map-by "slot:PE=$job_threads" --bind-to core)
        fi
        # Away from the terminal's Ctrl-C: it comes to this shell, which asks for a stop.
        job_under_slurm || job_words=(setsid "${job_words[@]}")
    fi
}

# job_launch RANKS COMMAND...: runs it on RANKS ranks and returns its exit code; 85 at once when a
# signal has come before. Signals interrupt `wait`, so the launcher runs in the background.
job_launch()
{
    local ranks=$1 code_file='' code seen
    shift
    [ "$job_signals" = 0 ] || return 85
    job_launch_words "$ranks" "${job_spread:-no}"
    [ "$job_launcher" = srun ] || code_file=$(mktemp)
    # Ignored until the launcher listens, and again when it ends: SIGUSR1 must not kill it.
    (trap '' USR1 && exec "${job_words[@]}" bash "$job_top/jobs/rank.sh" "$code_file" "$@") </dev/null &
    job_child=$!
    while
        seen=$job_signals code=0
        wait "$job_child" || code=$?
        [ "$seen" != "$job_signals" ]
    do :; done
    [ -z "$job_reminder" ] || kill "$job_reminder" 2>/dev/null || true
    job_child='' job_reminder=''
    if [ -n "$code_file" ]; then
        [ ! -s "$code_file" ] || code=$(cat "$code_file")
        rm -f "$code_file"
    fi
    return "$code"
}

# Of --set data.file=... or else of the configuration.
job_data_file()
{
    local config=$1 word file=''
    shift
    for word in "$@"; do
        case $word in
        data.file=*) file=${word#data.file=} ;;
        --set=data.file=*) file=${word#--set=data.file=} ;;
        esac
    done
    if [ -z "$file" ]; then
        file=$(awk '/^data:/ { inside = 1; next } /^[^ #]/ { inside = 0 }
            inside && /^ +file:/ { sub(/^ +file: */, ""); sub(/ +#.*/, ""); print; exit }' "$config")
        file=${file//[\"\']/}
    fi
    echo "${file:-data/listops.h5}"
}

# Copies a file to each node's own disk; job_staged/<its name> is then the copy.
job_stage()
{
    job_staged=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/rfa-$job_id
    # shellcheck disable=SC2016
    job_spread=yes job_launch "$job_nodes" bash -c \
        'mkdir -p "$1" && cp -- "$2" "$1/.$$" && mv -- "$1/.$$" "$1/${2##*/}"' \
        stage "$job_staged" "$1" || {
        [ "$job_signals" = 0 ] || return 85
        job_die "can't copy $1 to $job_staged on all nodes" 3
    }
    # Otherwise Open MPI waits for ever for a lock file that the first rank has put beside its copy.
    export OMPI_MCA_sharedfp=individual
    job_say "$1 is staged in $job_staged on $(job_count "$job_nodes" node)"
}

job_clean()
{
    if [ -n "$job_staged" ]; then
        job_signals=0
        job_spread=yes job_launch "$job_nodes" rm -rf "$job_staged" 2>/dev/null || true
        job_staged=
    fi
}

# "finished", "stopped", "diverged", "running" (or killed while it ran); nothing without a run.
job_state()
{
    [ ! -e "$1" ] || "${job_program[@]}" inspect "$1" 2>/dev/null </dev/null |
        sed -n '1s/.*: run, \([a-z]*\) after .*/\1/p'
}

# job_train CONFIG [options of rfa train]: starts it, or goes on where it was; a run that has ended
# is not repeated, unless --overwrite says so at the first start. Returns the program's exit code.
job_train()
{
    local config=$1 run='' overwrite=no options=() how=() state data
    shift
    while [ $# -gt 0 ]; do
        case $1 in
        --out) run=${2:-} && shift ;;
        --out=*) run=${1#--out=} ;;
        --overwrite) overwrite=yes ;;
        --resume) ;;
        *) options+=("$1") ;;
        esac
        shift || true
    done
    data=${config##*/}
    run=${run:-runs/${data%.*}.h5}
    state=$(job_state "$run")
    if [ "$overwrite" = yes ] && [ "$job_restarts" = 0 ]; then
        how=(--overwrite)
    elif [ "$state" = finished ]; then
        job_say "$run is finished; --overwrite trains anew"
        [ ! "$config" -nt "$run" ] || job_say "WARNING: $config is newer than $run"
        return 0
    elif [ "$state" = diverged ]; then
        job_say "$run has diverged, and would again; --overwrite trains anew"
        return 5
    elif [ -e "${run%.h5}.ckpt" ] || [ -e "${run%.h5}.ckpt.prev" ]; then
        how=(--resume)
    elif [ -e "$run" ]; then
        job_say "$run has no checkpoint to go on from: it starts anew"
        how=(--overwrite)
    fi
    if [ "${RFA_STAGE:-0}" = 1 ]; then
        data=$(job_data_file "$config" "${options[@]}")
        job_stage "$data" || return
        options+=(--set "data.file=$job_staged/${data##*/}")
    fi
    job_launch "$job_ranks" "${job_program[@]}" train "$config" --set "parallel.threads=$job_threads" \
        "${options[@]}" --out "$run" "${how[@]}"
}

# job_end CODE: ends the job with the code; when the run was stopped, puts it back into the queue.
# Not when somebody has cancelled it: then the job is no longer running, before its time is over.
# Which signal came says nothing: SLURM sends the same ones for limits, preemption and scancel.
job_end()
{
    local code=$1 most=${RFA_MAX_RESTARTS:-20} state
    [ "$code" = 85 ] || exit "$code"
    job_clean # later SLURM starts nothing more for this job
    state=$(squeue -h -j "$job_id" -o %T 2>/dev/null | head -n 1)
    if [ "$state" != RUNNING ] && [ "$(date +%s)" -lt "${RFA_END_TIME:-9999999999}" ]; then
        job_say "stopped, and not put back (${state:-gone}): the same command goes on with it"
    elif [ "$job_restarts" -ge "$most" ]; then
        job_say "stopped after $(job_count "$job_restarts" restart), RFA_MAX_RESTARTS: the same command goes on"
    elif scontrol requeue "$job_id"; then
        job_say "stopped, and put back into the queue: restart $((job_restarts + 1)) of at most $most"
    else
        job_say "stopped, and SLURM refuses to put it back: the same command goes on with it"
    fi
    exit "$code"
}
