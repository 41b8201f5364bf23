# What newcomers and bad days do: one line, the right code, soon, nothing lost.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out d.h5 --train 40 --val 10 --test 10
expect_code 0
yaml=$SOURCE/configs/lra/listops/rfa.yaml
small=(--set data.file=d.h5 --set train.warmup=2 --set train.batch=8 --set train.steps=4)

refused() # CODE REGEX RANKS ARGS...
{
    local want=$1 line=$2
    shift 2
    run "$@"
    expect_code "$want"
    expect_line "$line"
}

run 1
expect_code 2
run 2 --help
expect_code 0
run 2 train --help
expect_code 0
expect_out 'usage: rfa train'
run 2 train --help-config
expect_code 0
expect_out 'segments'
refused 2 "no verb 'trian'" 2 trian
refused 2 'needs a configuration' 2 train
refused 2 '--sett' 2 train "$yaml" --sett train.seed=1
refused 3 'nowhere.yaml' 2 train nowhere.yaml
refused 2 'train.rate' 2 train "$yaml" --set train.lerning_rate=1
refused 2 'train.steps' 2 train "$yaml" --set train.steps=4x
printf 'train:\n  steps: 4\n  stepz: 5\n' >typo.yaml
refused 2 'typo.yaml:3:.*train.stepz.*train.steps' 2 train typo.yaml
refused 3 'nodata.h5' 2 train "$yaml" --set data.file=nodata.h5
refused 2 '9 ranks share a sequence of 8 segments' 9 train "$yaml" "${small[@]}"
refused 2 'parallel.sequence 2 does not divide 3' 3 train "$yaml" "${small[@]}" --set parallel.sequence=2
refused 2 'causal' 2 train "$yaml" "${small[@]}" --set attention.causal=true
refused 2 'exclude' 2 train "$yaml" --resume --overwrite
refused 3 'nothing.h5: No such file' 2 eval nothing.h5 --data d.h5
refused 3 'd.ckpt' 2 eval d.h5 --data d.h5
refused 2 'name the run' 2 eval run.ckpt --data d.h5
refused 3 'nothing.h5' 1 inspect nothing.h5

# --overwrite and --force replace what they make, nothing else.
cp d.h5 precious.h5
refused 2 'precious.h5 is not a run' 2 train "$yaml" "${small[@]}" --out precious.h5 --overwrite
cmp -s d.h5 precious.h5 || fail "a data set was written over"
run 1 train "$yaml" "${small[@]}" --out run.h5
refused 2 'run.h5: is a run' 1 data listops --out run.h5 --force --train 4 --val 2 --test 2
refused 2 "must be train, val or test" 1 eval run.h5 --data d.h5 --split dev
refused 2 "can't change the trained model: model.heads" 1 eval run.h5 --data d.h5 --set model.heads=4
refused 2 "unknown option '-o'" 1 train "$yaml" -out run.h5
run 1 train -h
expect_code 0

# Damaged data, seen by all ranks alike.
head -c 20000 d.h5 >cut.h5
refused 3 'cut.h5' 2 train "$yaml" "${small[@]}" --set data.file=cut.h5
echo 'not HDF5' >text.h5
refused 3 'text.h5' 3 train "$yaml" "${small[@]}" --set data.file=text.h5
python - <<'PYTHON'
import h5py, shutil
for name in ("label", "float", "id", "split"):
    shutil.copy("d.h5", name + ".h5")
    with h5py.File(name + ".h5", "r+") as f:
        if name == "label":
            f["train/labels"][7] = 10
        if name == "id":
            f["train/tokens"][:] = 200
        if name == "float":
            t = f["train/tokens"][:].astype("f4")
            del f["train/tokens"]
            f["train/tokens"] = t
        if name == "split":
            del f["val"]
PYTHON
refused 3 'label.h5.*labels.*7' 2 train "$yaml" "${small[@]}" --set data.file=label.h5
refused 3 'float.h5.*tokens' 2 train "$yaml" "${small[@]}" --set data.file=float.h5
refused 3 'id.h5' 4 train "$yaml" "${small[@]}" --set data.file=id.h5
refused 3 'split.h5.*val' 2 train "$yaml" "${small[@]}" --set data.file=split.h5

# A full disk: while the first record is written, and while the first checkpoint is.
full=$SCRATCH/full
mkdir -p "$full"
if mount -t tmpfs -o size=256k tmpfs "$full" 2>/dev/null; then
    trap 'umount "$full"' EXIT
    run 2 train "$yaml" "${small[@]}" --out "$full/run.h5"
    expect_code 3
    expect_line "$full/run"
    [ -z "$(find "$full" -name '*.tmp')" ] || fail "a temporary file is left on the full disk"
elif [ "${CI:-}" = true ]; then
    fail "the full disk can't be tested: no right to mount a tmpfs"
else
    echo "not tested for lack of rights: a full disk"
fi

# A folder that can't be made, and one rank that fails while the others go on.
touch file
refused 3 'file/run' 2 train "$yaml" "${small[@]}" --out file/run.h5
for rank in 0 1 2; do
    RFA_FAULT=train.step@$rank refused 3 "rank $rank: injected" 3 train "$yaml" "${small[@]}" --out f.h5 --overwrite
done

# A run that leaves the range of numbers is an outcome: exit 5, on record, resumable before it.
RFA_FAULT=train.nan@0 run 3 train "$yaml" "${small[@]}" --out wild.h5
expect_code 5
expect_line 'step 1: .*diverged'
[ "$(python -c 'import h5py; print(h5py.File("wild.h5").attrs["state"])')" = diverged ] || fail "state"

# A scheduler that starts P processes which all believe to be alone.
SLURM_STEP_NUM_TASKS=4 run 0 train "$yaml" "${small[@]}" --out alone.h5
expect_code 2
expect_line 'SLURM started 4 tasks'
