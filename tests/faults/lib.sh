# Helpers of tests/faults/*.sh, on top of tests/cli/lib.sh. Run by hand, without CTest's variables, the
# scripts take build/release/rfa and a scratch folder below build/.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export SOURCE=${SOURCE:-${here%/tests/faults}}
if [ -z "${RFA:-}" ]; then
    . "$SOURCE/jobs/setup.sh" build
    RFA=$SOURCE/build/release/rfa
fi
MPIRUN=${MPIRUN:-mpirun}
PYTHON=${PYTHON:-${RFA_PYTHON:-/usr/bin/python3}}
SCRATCH=${SCRATCH:-$SOURCE/build/scratch/$(basename "$0" .sh)}
. "$SOURCE/tests/cli/lib.sh"
[ -x "$RFA" ] || fail "no program $RFA: cmake --preset release && cmake --build --preset release"

# A killed mpirun leaves its folders and shared memory: they go with the test. A short path, since
# sockets stand in it.
runtime=$(mktemp -d /dev/shm/rfa-faults.XXXXXX)
export TMPDIR=$runtime OMPI_MCA_btl_vader_backing_directory=$runtime
job=          # the session of the job that start began, while it may run
at_exit=()    # commands, the last first
clean_up()
{
    local i
    [ -z "$job" ] || kill_job
    for ((i = ${#at_exit[@]} - 1; i >= 0; i--)); do
        eval "${at_exit[i]}" || true
    done
    rm -rf "$runtime"
}
trap clean_up EXIT
trap 'exit 1' TERM INT HUP

# tiny_data: d.h5, small enough that most of a run's time goes into its files.
tiny_data()
{
    run 1 data listops --out d.h5 --train 60 --val 20 --test 20 --min-length 20 --max-length 60 \
        --max-depth 4
    expect_code 0
}

# tiny STEPS EVALUATE CHECKPOINT: writes quick.yaml.
tiny()
{
    cat >quick.yaml <<YAML
data: {file: d.h5, max_length: 64}
model: {layers: 1, width: 16, feed_forward: 16, head: 8, pooling: mean}
attention: {features: 8, pool: 4}
parallel: {segments: 4}
train: {steps: $1, batch: 4, warmup: 2, evaluate_every: $2, checkpoint_every: $3}
YAML
}

# start RANKS ARGS...: a job in the background, in a session of its own, its output in job.out and
# job.err. Sets job.
start()
{
    local ranks=$1
    shift
    command_line="rfa $* ($ranks ranks, in the background)"
    setsid "$MPIRUN" -q -n "$ranks" --oversubscribe "$RFA" "$@" >job.out 2>job.err </dev/null &
    job=$!
}

job_runs()
{
    kill -0 "$job" 2>/dev/null
}

# The processes of the job: mpirun and all ranks, and nobody else's.
job_pids()
{
    ps -o pid= -s "$job" || true
}

# kill_job [PID...]: kill -9 of the job, first of the given processes, then of all that is left.
kill_job()
{
    local pids
    { # bash's notes about killed jobs
        [ $# = 0 ] || kill -9 "$@" || true
        while pids=$(ps -o pid=,stat= -s "$job" | awk '$2 !~ /^Z/ { print $1 }') && [ -n "$pids" ]; do
            kill -9 $pids || true
            sleep 0.02
        done
        wait "$job" || true
    } 2>/dev/null
    job=
}

# wait_job: until the job has ended by itself; sets code, and $out and $err as run does.
wait_job()
{
    local start=$SECONDS
    while job_runs; do
        [ $((SECONDS - start)) -lt "${RUN_SECONDS:-120}" ] || fail "still running"
        sleep 0.05
    done
    code=0
    wait "$job" || code=$?
    job=
    cp job.out "$out"
    cp job.err "$err"
}

# wait_for COMMAND...: until it succeeds; fails when the job ends before, or after 120 s.
wait_for()
{
    local start=$SECONDS
    until "$@"; do
        job_runs || fail "the job ended before: $*"
        [ $((SECONDS - start)) -lt 120 ] || fail "waited in vain for: $*"
        sleep 0.02
    done
}

# rows RUN: everything in a record that must not depend on interruptions.
rows()
{
    python - "$1" <<'PYTHON'
import h5py, sys
f = h5py.File(sys.argv[1])
s, e, t = f["steps"], f["evaluations"], f["test"]
print(f.attrs["state"])
for name in ("step", "loss", "learning_rate", "gradient_norm", "guards"):
    print(name, s[name][:].tolist())
print([hex(d) for d in s["digest"][:]])
for table in (e, t):
    print([table[n][()].tolist() for n in ("step", "loss", "correct", "examples", "confusion")])
best = h5py.File(sys.argv[1][:-3] + ".best.ckpt").attrs
print("best", best["step"], best["digest"], best["best_correct"])
PYTHON
}

# expect_whole NAME: NAME.h5 has ended as whole.h5 did, and the last run printed that; whole (rows)
# and final (digest) are set by keep_whole.
keep_whole()
{
    expect_code 0
    rows whole.h5 >whole
    final=$(value digest)
}
expect_whole()
{
    expect_code 0
    [ "$(value digest)" = "$final" ] || fail "digest $(value digest), without interruption $final"
    rows "$1.h5" >part
    cmp -s whole part || fail "rows of $1.h5 differ: $(diff whole part)"
    [ -z "$(find "$(dirname "$1")" -name '*.tmp')" ] || fail "a temporary file is left"
    [ ! -e "$1.jsonl" ] || fail "$1.jsonl is left"
}

# loads FILE...: rfa inspect takes each of those that exist; a record's torn end does not matter.
loads()
{
    local file
    for file in "$@"; do
        if [ -e "$file" ]; then
            run 0 inspect "$file"
            expect_code 0
        fi
    done
}
