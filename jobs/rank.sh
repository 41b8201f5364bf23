#!/usr/bin/env bash
# What jobs/lib.sh starts once a rank, in front of the program:
#
#   bash rank.sh CODE_FILE PROGRAM ARGUMENTS...
#
# Says where the ranks of a node may run, and keeps a warning that comes before the program
# listens from ending it. With a CODE_FILE (mpirun) the exit codes on which all ranks agree go
# there, and 0 to mpirun: for mpirun any other code is a crash, and then it sleeps twice as long
# as it leaves to the ranks after SIGTERM. Without (srun passes codes on) the program takes over.
trap '' USR1 USR2

code_file=$1
shift
rank=${OMPI_COMM_WORLD_RANK:-${SLURM_PROCID:-0}}
on_node=${OMPI_COMM_WORLD_LOCAL_RANK:-${SLURM_LOCALID:-0}}
allowed=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
threads=${OMP_NUM_THREADS:-1}
cores=$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)
if [ "$on_node" = 0 ]; then
    echo "job: rank $rank is the first on $(uname -n): CPUs $allowed, $threads thread$([ "$threads" = 1 ] || echo s)" >&2
fi
if [ "$cores" -lt "$threads" ]; then
    echo "job: WARNING: rank $rank on $(uname -n) has $threads threads but $cores CPU$([ "$cores" = 1 ] || echo s) ($allowed)" >&2
fi

[ -n "$code_file" ] || exec "$@"

trap : TERM INT
code=0
"$@" || code=$?
case $code in
2 | 3 | 4 | 5 | 85)
    [ "$rank" != 0 ] || echo "$code" >"$code_file"
    exit 0
    ;;
esac
exit "$code"
