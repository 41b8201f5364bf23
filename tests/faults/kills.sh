#!/usr/bin/env bash
# kill -9 of whole training runs at random moments; after each the files must be whole, and the run is
# resumed and killed again until it ends, with the digests, rows and result of a run without kills.
#
#   bash tests/faults/kills.sh [N [SEED]]     N kills (200)
#
# A quarter of the kills comes at any time from the start on, a quarter at any time while steps are
# taken, a quarter while the record is being written, a quarter while a checkpoint is.
. "$(dirname "$0")/lib.sh"
count=${1:-200}
seed=${2:-$(($(date +%s) % 32768))}
RANDOM=$seed
echo "seed $seed"
fresh
tiny_data
tiny 80 2 1
run 2 train quick.yaml --out whole.h5
keep_whole

# What must hold after a kill. Prints where it struck: record, checkpoint or other.
cat >survivors.py <<'PYTHON'
import glob, h5py, json, os, re
whole = h5py.File("whole.h5")
log = open("job.err").read()
said = [int(s) for s in re.findall(r"^step (\d+): validation", log, re.M)]


def read(name):
    """Attributes of the checkpoints name.ckpt.prev and name.ckpt, those that are there."""
    found = []
    for file in (name + ".ckpt.prev", name + ".ckpt"):
        if os.path.exists(file):
            with h5py.File(file) as f:
                a = dict(f.attrs)
            assert a["complete"], file
            assert a["digest"] == "%016x" % whole["steps/digest"][a["step"] - 1], (file, a)
            found.append(a)
    steps = [a["step"] for a in found]
    assert steps == sorted(steps) and (name != "part" or steps == sorted(set(steps))), (name, steps)
    return found


newest, best = read("part")[-1:], [a["step"] for a in read("part.best")]
checkpoints = [a["step"] for a in read("part")]
for a in newest:  # a checkpoint never names a best one that is not there
    assert a["best_step"] < 1 or a["best_step"] in best, (a["best_step"], best)
if os.path.exists("part.h5"):
    with h5py.File("part.h5") as f:
        table = {n: c[:] for n, c in f["steps"].items()}
        evaluations = {n: c[:] for n, c in f["evaluations"].items()}
        assert f.attrs["state"] in ("running", "finished")
    for name in ("step", "loss", "digest"):
        n = len(table[name])
        assert (table[name] == whole["steps"][name][:n]).all(), name
    for name in evaluations:  # without a row there is no confusion either
        n = len(evaluations[name])
        assert (evaluations[name] == whole["evaluations"][name][:n]).all(), name
    steps, evaluated = list(table["step"]), list(evaluations["step"])
else:
    assert not said and not checkpoints, "no record"
    steps, evaluated = [], []
# Lines: all whole but for the end of the last one, and no step is missing.
if os.path.exists("part.jsonl"):
    for line in open("part.jsonl").read().split("\n")[:-1]:
        row = json.loads(line)
        if "digest" in row:
            i = row["step"] - 1
            assert int(row["digest"], 16) == whole["steps/digest"][i], line
            assert row["loss"] == whole["steps/loss"][i], line
            steps.append(row["step"])
steps = sorted(set(steps))
assert steps == list(range(1, len(steps) + 1)), steps
last = max(checkpoints, default=0)
assert len(steps) >= last, (steps, checkpoints)
# Every evaluation that had ended: those before the newest checkpoint, before the newest step, and
# all that were announced but the last, which may have been under way.
ended = {s for s in whole["evaluations/step"][:] if s <= last or s < len(steps)} | set(said[:-1])
assert ended <= set(evaluated), (ended, evaluated)
left = glob.glob("part.*.tmp")
assert set(left) <= {"part.ckpt.tmp", "part.best.ckpt.tmp", "part.h5.tmp"}, left
begun = os.stat("begun").st_mtime_ns  # what a kill before left may still be there
left = [name for name in left if os.stat(name).st_mtime_ns >= begun]
assert len(left) < 2, left
print("other" if not left else "record" if left == ["part.h5.tmp"] else "checkpoint")
PYTHON

# hold FILE: stops the job while FILE is there. That is for milliseconds, so it looks again.
hold()
{
    while job_runs; do
        if [ -e "$1" ]; then
            kill -STOP $pids 2>/dev/null || true
            sleep 0.01
            [ ! -e "$1" ] || return 0
            kill -CONT $pids 2>/dev/null || true
        fi
    done
}

# moment KIND: returns when it has come, or when the job has ended.
moment()
{
    local wait=$((RANDOM % 400)) # here, since a subshell has random numbers of its own
    if [ "$1" = start ]; then
        wait=$((RANDOM % 2000))
    else
        until [ part.h5 -nt begun ] || ! job_runs; do sleep 0.01; done
        pids=$(job_pids)
    fi
    sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
    case $1 in
    record) hold part.h5.tmp ;;
    checkpoint) hold part.ckpt.tmp ;;
    esac
}

kinds=(start any record checkpoint)
declare -A struck=([record]=0 [checkpoint]=0 [other]=0)
spent=0 runs=0 launches=0
while [ $spent -lt "$count" ]; do
    rm -f part.*
    runs=$((runs + 1))
    here=0 # kills of this run
    while :; do
        ranks=2
        [ $((RANDOM % 4)) != 0 ] || ranks=$((RANDOM % 4 + 1))
        how=--overwrite
        [ ! -e part.ckpt ] && [ ! -e part.ckpt.prev ] || how=--resume
        touch begun
        start $ranks train quick.yaml --out part.h5 $how
        launches=$((launches + 1))
        if [ $spent -lt "$count" ] && [ $here -lt 20 ]; then
            pids=
            moment "${kinds[spent % 4]}"
            if job_runs; then
                kill_job $pids
                spent=$((spent + 1)) here=$((here + 1))
                where=$(python survivors.py)
                struck[$where]=$((struck[$where] + 1))
                continue
            fi
        fi
        wait_job
        expect_whole part
        break
    done
done
echo "$spent kills in $runs runs, $launches launches: ${struck[record]} while the record was written," \
    "${struck[checkpoint]} while a checkpoint was, ${struck[other]} elsewhere; all ended with digest $final"
[ $((struck[record] * 12)) -ge $spent ] && [ $((struck[checkpoint] * 12)) -ge $spent ] ||
    fail "too few kills struck a write"
