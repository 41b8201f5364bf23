#!/usr/bin/env bash
# The job scripts without SLURM, on this machine and RFA_RANKS (2) ranks.
#
#   bash jobs/local.sh train CONFIG [options of rfa train]
#   bash jobs/local.sh sweep CONFIG SWEEP
#   bash jobs/local.sh scaling CONFIG [options of rfa train]
#   bash jobs/local.sh data TASK [options of rfa data]
#   bash jobs/local.sh fidelity CONFIG [options of rfa fidelity]
#
# A run that stopped at its own limit (train.max_minutes) goes on at once, RFA_MAX_RESTARTS (20)
# times at most; after Ctrl-C it has a checkpoint, and the same command goes on. Finished runs are
# not repeated. OMP_NUM_THREADS sets the threads a rank.
set -euo pipefail
job_local=yes
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$job_top/jobs/sweep.sh"
. "$job_top/jobs/scaling.sh"

# train_on COMMAND...: again while it stops by itself.
train_on()
{
    local code
    for ((job_restarts = 0; ; job_restarts++)); do
        code=0
        "$@" || code=$?
        if [ "$code" != 85 ] || [ "$job_signals" != 0 ] ||
            [ "$job_restarts" -ge "${RFA_MAX_RESTARTS:-20}" ] ||
            [ "$(date +%s)" -ge "${RFA_END_TIME:-9999999999}" ]; then
            return "$code"
        fi
    done
}

# A failed run is no reason not to try the others.
run_sweep()
{
    local list run settings code worst=0
    list=$(sweep_list "$@")
    while IFS=$'\t' read -r run settings; do
        code=0
        train_on sweep_run "$1" "$run" "$settings" || code=$?
        [ "$code" = 0 ] || worst=$code
        [ "$job_signals" = 0 ] || return "$worst"
    done <<<"$list"
    sweep_report "$list"
    return "$worst"
}

verb=${1:-}
[ $# -ge 2 ] || job_die "usage: bash jobs/local.sh train|sweep|scaling|data|fidelity ..."
shift
. "$job_top/jobs/setup.sh" build
job_begin
case $verb in
train) train_on job_train "$@" ;;
sweep) run_sweep "$@" ;;
scaling) scaling "$@" ;;
data | fidelity) job_launch "$job_ranks" "${job_program[@]}" "$verb" "$@" ;;
*) job_die "no '$verb': train, sweep, scaling, data or fidelity" ;;
esac
