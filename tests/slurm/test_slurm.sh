# The job scripts on a real SLURM of two nodes (cluster.sh): a run on both; one that meets its time
# limit, and goes on to the digest of an uninterrupted one; scancel; restarts and their bound; exit
# codes; a sweep; scaling. Without SLURM it is skipped (77), which is a failure with CI=true.
. "$SOURCE/tests/cli/lib.sh"
fresh
cluster=$(mktemp -d "${TMPDIR:-/tmp}/rfa-slurm.XXXXXX")/c
trap 'bash "$SOURCE/tests/slurm/cluster.sh" down "$cluster" && rm -rf "${cluster%/c}"' EXIT
missing=0
bash "$SOURCE/tests/slurm/cluster.sh" up "$cluster" 2 4 2>"$err" || missing=$?
if [ "$missing" = 77 ]; then
    trap - EXIT
    rm -rf "${cluster%/c}"
    skip "$(cat "$err")"
fi
[ "$missing" = 0 ] || fail "no cluster"
. "$cluster/env.sh"
export RFA RFA_PYTHON=$PYTHON OMP_WAIT_POLICY=passive # there are more threads than cores
jobs=$SOURCE/jobs
settings=("$SOURCE/configs/lra/listops/quickstart.yaml" --set data.file=d.h5 --set data.max_length=256
    --set train.batch=8 --set train.warmup=10 --set train.steps=120 --set train.evaluate_every=60
    --set train.evaluate_examples=0 --set train.checkpoint_every=40)

# submit ARGS...: sbatch; the job's number is in id, its log in log.
submit()
{
    command_line="sbatch $*"
    : >"$out"
    err=$SCRATCH/err # not the log of the job before
    id=$(sbatch --parsable --output=%j.log "$@" 2>"$err") || fail "sbatch"
    log=$id.log
    err=$SCRATCH/here/$log
}

# within SECONDS COMMAND...: it succeeds within this time.
within()
{
    local tries=$(($1 * 10))
    shift
    until "$@"; do
        [ $((tries--)) -gt 0 ] || fail "not in time: $*; $(squeue 2>&1)"
        sleep 0.1
    done
}

logged()
{
    grep -qE -- "$1" "$log" 2>/dev/null
}

expect_log()
{
    logged "$1" || fail "no line of $log matches: $1"
}

field()
{
    scontrol show job -o "$1" | tr ' ' '\n' | sed -n "s/^$2=//p"
}

has_ended()
{
    [[ $(field "$id" JobState) =~ COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL|OUT_OF_MEMORY ]]
}

# expect_end STATE CODE: of the last job, as soon as it has ended. CODE is a pattern.
expect_end()
{
    within 240 has_ended
    [[ "$(field "$id" JobState) $(field "$id" ExitCode)" == "$1 "$2 ]] ||
        fail "job $id: $(field "$id" JobState) $(field "$id" ExitCode), not $1 $2"
}

# has_steps RUN N: at least N steps are on record beside it.
has_steps()
{
    [ -s "$1.jsonl" ] && [ "$(grep -c '"loss"' "$1.jsonl")" -ge "$2" ]
}

# freeze STOP|CONT: the ranks of this cluster's job.
freeze()
{
    local process
    for process in /proc/[0-9]*; do
        if [ "$(readlink "$process/exe" 2>/dev/null || true)" = "$RFA" ] &&
            grep -qzx "SLURM_JOB_ID=$id" "$process/environ" 2>/dev/null &&
            grep -qzx "SLURM_CONF=$SLURM_CONF" "$process/environ"; then
            kill -s "$1" "${process#/proc/}" || true
        fi
    done
}

same_digest()
{
    [ "$(sed -n 's/^digest //p' "$log")" = "$digest" ] || fail "digest of $log is not $digest"
}

# Data on both nodes; the run that nobody disturbs, without SLURM.
submit --nodes=2 --ntasks=2 "$jobs/data.sbatch" listops --out d.h5 --train 60 --val 20 --test 20
expect_end COMPLETED 0:0
err=$SCRATCH/err
env -u SLURM_CONF "$MPIRUN" -q -n 2 "$RFA" train "${settings[@]}" --out whole.h5 >"$out" 2>"$err" || fail "whole"
digest=$(value digest)

# Two nodes, two threads a rank, the data staged to the nodes' own disks. Ended runs stay.
SLURM_TMPDIR=$cluster/local RFA_STAGE=1 submit --nodes=2 --ntasks-per-node=1 --cpus-per-task=2 --time=5 \
    "$jobs/train.sbatch" "${settings[@]}" --out two.h5
expect_end COMPLETED 0:0
same_digest
expect_log "^job: $id, start 1: 2 ranks on 2 nodes by srun, 2 threads a rank, .* ends at "
expect_log 'is the first on node1: .* 2 threads'
expect_log 'is the first on node2'
expect_log "d.h5 is staged in $cluster/local/rfa-$id on 2 nodes"
[ "$(srun --nodes=2 --ntasks=2 ls "$cluster/local" | wc -l)" = 0 ] || fail "the staged data stayed"
python - "$cluster/local/rfa-$id/d.h5" <<'PYTHON'
import h5py, sys
f = h5py.File("two.h5")
assert f["config"].attrs["data.file"] == sys.argv[1], dict(f["config"].attrs)
assert f["config"].attrs["parallel.threads"] == 2, dict(f["config"].attrs)
PYTHON
submit --ntasks=1 "$jobs/train.sbatch" "${settings[@]}" --out two.h5
expect_end COMPLETED 0:0
expect_log 'two.h5 is finished'
[ "$(grep -c '^digest' "$log")" = 0 ] || fail "trained again"

# The time limit. SLURM looks at limits every 30 s, so the ranks are frozen until it has warned.
submit --nodes=2 --ntasks=2 --time=2 --signal=B:USR1@90 "$jobs/train.sbatch" "${settings[@]}" --out limit.h5
within 120 has_steps limit 3
freeze STOP
limit=$id
(within 120 logged '^job: SIGUSR1: asking the ranks to stop' && freeze CONT) &

# In the meantime a sweep: four runs of one rank, four files.
cat >small.sweep <<'SWEEP'
# two seeds of each
train.seed=1,2 attention.kind=softmax,rfa
SWEEP
cat >sweep.yaml <<'YAML'
data:
  file: d.h5
  max_length: 128
train:
  batch: 4
  steps: 10
  warmup: 5
YAML
sweep()
{
    command_line="sweep.sh $*"
    bash "$jobs/sweep.sh" "$@" >"$out" 2>"$err" || fail "sweep.sh $1"
}
err=$SCRATCH/err
sweep submit sweep.yaml small.sweep --ntasks=1 --time=5
expect_out '^sweep: 4 runs, 0 finished$'
id=$(sed -n 's/^sweep: job \([0-9]*\) reports.*/\1/p' "$out")
log=rfa-sweep-report-$id.log
expect_end COMPLETED 0:0
expect_log '^4 of 4 finished'
expect_log '^best by validation: attention.kind=(rfa|softmax) train.seed=[12]$'
python - <<'PYTHON'
import h5py
for kind in "rfa", "softmax":
    for seed in 1, 2:
        f = h5py.File(f"runs/sweep-small/attention.kind={kind},train.seed={seed}.h5")
        c = f["config"].attrs
        assert (c["attention.kind"], c["train.seed"]) == (kind, seed), dict(c)
        assert f.attrs["state"] == "finished" and f["steps/step"].shape == (10,)
assert len({h5py.File(f"runs/sweep-small/attention.kind={k},train.seed={s}.h5")["steps/digest"][-1]
            for k in ("rfa", "softmax") for s in (1, 2)}) == 4
PYTHON
# Again: nothing to do. With one more line, which can't work: only that one runs, and is listed.
stamp=$(stat -c %Y.%i runs/sweep-small/*.h5)
sweep submit sweep.yaml small.sweep --ntasks=1
expect_out '^sweep: 4 runs, 4 finished$'
[ "$(wc -l <"$out")" = 1 ] || fail "jobs for nothing"
echo 'model.width=64 model.heads=3' >>small.sweep
sweep submit sweep.yaml small.sweep --ntasks=1 --time=5
expect_out '^sweep: job array [0-9]*: 1 runs$'
id=$(sed -n 's/^sweep: job \([0-9]*\) reports.*/\1/p' "$out")
log=rfa-sweep-report-$id.log
expect_end COMPLETED 0:0
expect_log '^4 of 5 finished'
expect_log '^failed: .*exit code 2 in job [0-9]*_5.*: model.heads=3 model.width=64$'
[ "$(stat -c %Y.%i runs/sweep-small/*.h5)" = "$stamp" ] || fail "finished runs were touched"

# Back to the limit: warned, checkpoint, into the queue, on from there, the same digest.
id=$limit
log=$id.log
err=$SCRATCH/here/$log
wait
within 120 logged '^job: stopped, and put back into the queue: restart 1 of at most 20'
within 120 logged "^job: $id, start 2: "
expect_end COMPLETED 0:0
same_digest
expect_log 'resuming limit.h5 after step [0-9]+'
[ "$(field "$id" Restarts)" = 1 ] || fail "$(field "$id" Restarts) restarts"
python - <<'PYTHON'
import h5py
a, b = h5py.File("whole.h5"), h5py.File("limit.h5")
for name in "step", "loss", "digest":
    assert (a["steps"][name][:] == b["steps"][name][:]).all(), name
PYTHON

# The same by mpirun, and the bound: a warning, one restart, a warning, the end with 85.
RFA_LAUNCHER=mpirun RFA_MAX_RESTARTS=1 submit --nodes=2 --ntasks=2 --time=5 \
    "$jobs/train.sbatch" "${settings[@]}" --out bound.h5
within 120 has_steps bound 3
freeze STOP
scancel --batch --signal=USR1 "$id"
freeze CONT
within 120 logged "^job: $id, start 2: 2 ranks on 2 nodes by mpirun"
within 120 logged '^resuming bound.h5'
within 120 has_steps bound 3
freeze STOP
scancel --batch --signal=USR1 "$id"
freeze CONT
expect_end FAILED 85:0
expect_log 'stopped after 1 restart,'

# scancel: not put back, but resumable, here without SLURM. It wakes frozen ranks.
submit --nodes=2 --ntasks=2 --time=5 "$jobs/train.sbatch" "${settings[@]}" --out cancelled.h5
within 120 has_steps cancelled 3
freeze STOP
scancel "$id"
expect_end CANCELLED '*'
expect_log '^job: stopped, and not put back'
"$RFA" inspect cancelled.h5 >"$out" || fail "inspect"
expect_out '^cancelled.h5: run, stopped after [0-9]+ steps'
for run in cancelled bound; do
    env -u SLURM_CONF RFA_RANKS=2 RFA_NO_INSTALL=1 bash "$jobs/local.sh" train "${settings[@]}" \
        --out "$run.h5" >"$out" 2>"$run.log" || fail "local.sh: $(cat "$run.log")"
    [ "$(value digest)" = "$digest" ] || fail "another digest after scancel"
    grep -q "^resuming $run.h5" "$run.log" || fail "$run did not go on"
done

# Other codes end the job with that code.
submit --ntasks=2 "$jobs/train.sbatch" "${settings[@]}" --set train.stepz=1 --out none.h5
expect_end FAILED 2:0
[ "$(field "$id" Restarts)" = 0 ] || fail "restarted"

# srun that doesn't know about MPI starts two programs that believe to be alone. (This Open MPI would see
# by these variables that it has lost its way; others don't.)
err=$SCRATCH/err
command_line="srun --mpi=none"
code=0
srun --mpi=none --nodes=2 --ntasks=2 env -u SLURM_JOBID -u SLURM_NODELIST \
    "$RFA" train "${settings[@]}" --out alone.h5 >"$out" 2>"$err" || code=$?
expect_code 2
grep -q 'SLURM started 2 tasks' "$err" || fail "lonely ranks are not refused"
[ ! -e alone.h5 ] || fail "lonely ranks have trained"

# Scaling on two tasks, on a node each.
RFA_REPEATS=2 RFA_SCALING_STEPS=3 submit --nodes=2 --ntasks-per-node=1 --time=5 \
    "$jobs/scaling.sbatch" "${settings[@]}"
expect_end COMPLETED 0:0
python - "runs/scaling-$id.csv" <<'PYTHON'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [(r["kind"], r["ranks"], r["nodes"], r["max_length"]) for r in rows] == [
    ("strong", "1", "1", "256"), ("strong", "2", "2", "256"),
    ("weak", "1", "1", "128"), ("weak", "2", "2", "256")], rows
assert rows[0]["digest"] == rows[1]["digest"] != rows[2]["digest"], rows
for r in rows:
    assert 0 < float(r["tokens_per_second_min"]) <= float(r["tokens_per_second_median"]), r
    assert 0 <= float(r["exchange_share"]) < 1, r
assert float(rows[1]["exchange_share"]) > 0 == float(rows[0]["exchange_share"]), rows
first, second = (float(r["tokens_per_second_median"]) for r in rows[:2])
assert abs(float(rows[1]["efficiency"]) - second / first / 2) < 1e-3, rows
PYTHON
expect_log '^strong +2 +2 '
