#!/usr/bin/env bash
# rfa bench: every case on one and two ranks; lines and files that agree with themselves; wrong
# results, which are never timed; bad input.
. "$SOURCE/tests/cli/lib.sh"
fresh
small=(--set bench.ceiling=64 --set bench.lengths=100 --set bench.sizes=16,33 --set bench.states=40
    --set data.max_length=100 --set train.batch=3 --set attention.landmarks=7 --set attention.window=9
    --set model.width=32 --set attention.features=16)

# check_lines: stdout holds objects of JSON that agree with themselves; a set of "case variant
# phase" words must be among them.
check_lines()
{
    python - "$out" "$@" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
assert rows
keys = {"case", "variant", "phase", "parameters", "ranks", "threads", "repeats", "calls", "minimum_seconds",
        "median_seconds", "maximum_seconds", "tokens", "tokens_per_second", "flops", "flops_per_second", "ceiling",
        "ratio", "executed_flops", "executed_ratio", "bytes", "copy_bandwidth", "copy_ratio", "peak_bytes", "error",
        "tolerance", "blas"}
def near(a, b):
    return abs(a - b) <= 1e-6 * max(abs(a), abs(b))
for r in rows:
    assert set(r) == keys, set(r) ^ keys
    assert 0 < r["minimum_seconds"] <= r["median_seconds"] <= r["maximum_seconds"], r
    ceiling, copy = r["ceiling"], r["copy_bandwidth"]
    assert (ceiling > 0 and copy > 0) == (r["case"] != "drift"), r  # which is no measurement of speed
    assert near(r["ratio"] * ceiling, r["flops"] / r["median_seconds"]), r
    assert near(r["executed_ratio"] * ceiling, r["executed_flops"] / r["median_seconds"]), r
    assert near(r["copy_ratio"] * copy, r["bytes"] / r["median_seconds"]), r
    assert near(r["tokens_per_second"], r["tokens"] / r["median_seconds"]), r
    assert near(r["flops_per_second"], r["flops"] / r["median_seconds"]), r
    assert r["error"] <= r["tolerance"] < 1, r
    assert r["peak_bytes"] > 0 and r["calls"] >= 1, r
    if r["case"] == "gemm":
        n = r["parameters"]["n"]
        assert r["flops"] == r["executed_flops"] == 2 * n**3 * r["ranks"] * r["threads"], r
    if r["case"] == "attention" and r["variant"] == "rfa":  # H d = 32, F = 2 D = 32
        tokens = r["parameters"]["N"] * r["parameters"]["B"]
        assert r["tokens"] == tokens
        flops = {"forward": 4 * 16 * 32 + 4 * 32 * 32, "backward": 4 * 16 * 32 + 8 * 32 * 32}
        flops["all"] = flops["forward"] + flops["backward"]
        assert r["flops"] == flops[r["phase"]] * tokens, r
seen = {(r["case"], r["variant"], r["phase"]) for r in rows}
for word in sys.argv[2:]:
    assert any(word == " ".join(s).strip() for s in seen), (word, seen)
PY
}

for ranks in 0 2; do
    run $ranks bench gemm features attention exchange step length --json --repeats 2 "${small[@]}" --out all$ranks.h5
    expect_code 0
    check_lines gemm 'features gaussian forward' 'features elu backward' 'attention rfa+causal all' \
        'attention rfa+causal+gated backward' 'attention softmax+causal forward' 'attention ra all' \
        'attention lara backward' 'attention eva+causal forward' 'attention performer+oprf all' \
        'exchange exscan+prefix+sums' 'exchange transposed+total+elements' 'step rfa update' 'length rfa all'
    count=$((ranks > 0 ? ranks : 1))
    grep -q "^$count ranks\? of 1 thread, OpenBLAS" "$err" || fail "no line about the machine"
    # The file says what the lines said, and explains itself.
    cp "$out" lines
    python - lines all$ranks.h5 $count <<'PY'
import json, sys
import h5py
rows = [json.loads(line) for line in open(sys.argv[1])]
with h5py.File(sys.argv[2]) as f:
    assert f.attrs["schema"] == "rfa bench 1" and f.attrs["ranks"] == int(sys.argv[3])
    assert f.attrs["bench.lengths"] == "100" and f["config"].attrs["model.width"] == 32
    for name in ("commit", "hosts", "blas", "mpi", "hdf5", "compiler", "written", "program"):
        assert f.attrs[name], name
    assert set(f) == {"config", "row", "results", "parameters"}
    for group in ("results", "parameters"):
        for name, column in f[group].items():
            assert column.shape == (len(rows),), name
            assert column.attrs["units"] and column.attrs["long_name"], name
            assert column.dims[0][0] == f["row"], name
    for i, r in enumerate(rows):
        for name in ("case", "variant", "phase"):
            assert f["results"][name][i].decode() == r[name]
        for name in ("median_seconds", "flops", "ratio", "peak_bytes", "error", "calls"):
            assert abs(f["results"][name][i] - r[name]) <= 1e-6 * abs(r[name]), (name, r)
        for name, column in f["parameters"].items():
            assert column[i] == r["parameters"].get(name, -1), (name, r)
PY
done

# The table has the same rows; a set of cases from a file, changed by --set; threads.
cat >set.yaml <<'Y'
bench:
  cases: attention
  attention: own, softmax
  lengths: 48, 64
attention:
  kind: elu
  causal: true
model:
  pooling: mean
Y
run 2 bench set.yaml "${small[@]}" --repeats 1 --set bench.lengths=48,64 --set parallel.threads=2
expect_code 0
[ "$(wc -l <"$out")" = 13 ] || fail "not a header and 2 * 2 * 3 rows"
expect_out '^attention own +backward .* N=48 '
expect_out '^attention softmax +all .* N=64 '
run 0 bench gemm --config set.yaml "${small[@]}" --repeats 1 --set bench.sizes=8 # cases given win
expect_code 0
expect_out '^gemm .* n=8$'
[ "$(wc -l <"$out")" = 2 ] || fail "more than gemm"

# Data parallel ranks and passes of one example.
run 2 bench step "${small[@]}" --repeats 1 --set parallel.sequence=1 --set train.micro_batch=1
expect_code 0
expect_out '^step rfa +all '

# Windows: a step of many is checked and timed like one of one; the carried state does not drift.
windows=(--set attention.causal=true --set model.pooling=mean --set train.window=32 --set parallel.segments=2
    --set bench.lengths=64,160)
for ranks in 0 2; do
    run $ranks bench length drift "${small[@]}" "${windows[@]}" --repeats 1 --json
    expect_code 0
    check_lines 'length rfa+causal all' 'drift rfa+causal'
done
RFA_FAULT=bench.drift@1 run 2 bench drift "${small[@]}" "${windows[@]}" --repeats 1
expect_code 1
expect_line 'bench drift rfa\+causal N=64 .*: wrong result: error .*, tolerance 0.0001'

# The weak kernel is warned of; the best is not.
if grep -q avx512vl /proc/cpuinfo; then
    OPENBLAS_CORETYPE=Haswell run 0 bench gemm "${small[@]}" --repeats 1
    expect_code 0
    grep -q '^rfa: warning: the BLAS kernel is not .*unset OPENBLAS_CORETYPE' "$err" || fail "no warning"
fi

# A wrong number, on any rank, is named and not timed, and no file is made of it.
for case in gemm features attention exchange step length; do
    RFA_FAULT=bench.$case@0 run 0 bench $case "${small[@]}" --repeats 1 --json --out wrong.h5
    expect_code 1
    expect_line "bench $case .*: wrong result: error [0-9.e-]+, tolerance "
    [ ! -s "$out" ] || fail "a wrong result was timed"
    [ ! -e wrong.h5 ] || fail "a file of wrong results"
done
RFA_FAULT=bench.attention@1 run 2 bench attention "${small[@]}" --repeats 1
expect_code 1
expect_line 'bench attention rfa N=100 .*: wrong result'

# Bad input: exit code 2 (3 for files) and one line.
refuse() # CODE REGEX RANKS ARGS...
{
    run "$3" bench "${@:4}"
    expect_code "$1"
    expect_line "$2"
}
refuse 2 'bench needs a case' 0
refuse 2 "no case 'gem': gemm, features, attention, exchange, step, length, drift" 2 gemm gem
refuse 2 'bench.repeats: ' 0 gemm --repeats 0
refuse 2 'bench.repeats: ' 2 gemm --repeats 2x
refuse 2 "bench.sizes: '1' is not a whole number" 0 gemm --set bench.sizes=1
refuse 2 "bench.lengths: '12' is not a whole number" 0 attention --set bench.lengths=12
refuse 2 'bench.states has no value' 0 exchange --set bench.states=
refuse 2 "no word 'casual' in 'rfa\+casual'" 2 attention --set bench.attention=rfa+casual
words=rfa+causal+gated+causal+gated+causal+gated+causal+gated+causal
refuse 2 "no word '.*\.\.\.' in 'rfa" 2 attention --set bench.attention=$words+gated+casual
refuse 2 "is not a whole number" 0 gemm --set "bench.sizes=$(printf '%062d' 0)1664"
refuse 2 'bench drift needs train.window' 0 drift
refuse 2 'bench.lengths must be multiples of train.window' 0 drift "${windows[@]}" --set bench.lengths=48
refuse 2 "'lara\+causal': attention.kind lara with attention.causal" 0 attention --set bench.attention=lara+causal
refuse 2 'parallel.sequence 2 does not divide 3 ranks' 3 step --set parallel.sequence=2
for case in attention exchange step; do
    refuse 2 '3 ranks share|segments' 3 $case --set parallel.segments=2
done
refuse 2 'all2.h5 exists' 2 gemm --out all2.h5
refuse 2 'must end in .h5' 0 gemm --out x.json
refuse 3 'none/x.h5: ' 0 gemm --out none/x.h5
refuse 3 'missing.yaml' 0 missing.yaml
refuse 2 "unknown option '--fast'" 0 gemm --fast
run 0 bench --help
expect_code 0
expect_out '^usage: rfa bench CASE'

# The shipped sets name cases and words that there are: a prefix of each is run at a small size.
for file in "$SOURCE"/configs/bench/*.yaml; do
    extra=()
    case $file in */length*) extra=(--set train.window=64 --set bench.lengths=64,128) ;; esac
    run 0 bench "$file" "${small[@]}" "${extra[@]}" --repeats 1 --set model.heads=1 --set model.layers=1 \
        --set model.feed_forward=32
    expect_code 0
done
