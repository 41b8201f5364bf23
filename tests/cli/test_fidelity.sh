#!/usr/bin/env bash
# rfa fidelity: tables and files that agree with a computation in Python, the same on any number of
# ranks; heads of a file; what is refused.
. "$SOURCE/tests/cli/lib.sh"
fresh
small=(--set fidelity.length=160 --set fidelity.width=16 --set fidelity.trials=2 --set fidelity.ceiling=64
    --set fidelity.features=8,32 --set fidelity.values=40)

for ranks in 1 3 4; do
    run $ranks fidelity "${small[@]}" --set fidelity.spectrum=all --out e$ranks.h5 \
        --set "fidelity.kinds=rfa+free,performer+oprf,lara,eva+quiet,ra,mean" --set fidelity.norms=1,3
    expect_code 0
    expect_out '^PDGEMM on '
done
expect_out '^smooth, norm 3'
run 2 fidelity --out e1.h5
expect_code 2
expect_line 'e1.h5 exists'

python - <<'PY'
import h5py, numpy as np
files = [h5py.File(f"e{n}.h5") for n in (1, 3, 4)]
one = files[0]
assert one.attrs["schema"] == "rfa fidelity 1" and one.attrs["ranks"] == 1
assert files[1].attrs["grid_rows"] * files[1].attrs["grid_columns"] == 1, "160 tokens: one process"
error = one["iid/error"]
assert [d[0].name for d in error.dims] == ["/kind", "/features", "/seed", "/norm", "/statistic"]
assert list(one["norm"]) == [1, 3] and list(one["features"]) == [8, 32]
names = [s.decode() for s in one["statistic"]]
for group in ("iid", "shared", "smooth"):
    e = one[group]["error"][...]
    assert np.isfinite(e).all()
    for other in files[1:]:
        # Estimates come from float kernels, whose shapes follow from the ranks; small denominators
        # make more of their roundings.
        assert np.allclose(e, other[group]["error"][...], rtol=1e-5, atol=1e-12), group
        assert np.allclose(one[group]["exact_values"][...], other[group]["exact_values"][...], rtol=0, atol=1e-12)
    assert np.allclose(one[group]["mean"][...], e.mean(2)) and np.allclose(one[group]["median"][...], np.median(e, 2))
    half = 12.706 * e.std(2, ddof=1) / np.sqrt(2)
    assert np.allclose(one[group]["high"][...] - one[group]["mean"][...], half, atol=1e-12, rtol=1e-3)
    # rank F: nothing of rank F is nearer than the best; only kinds that are of rank F or less
    frobenius = e[:, :, 0, :, names.index("frobenius")]
    for kind in (0, 1, 2, 5):
        assert (frobenius[kind] >= one[group]["best"][...] * (1 - 1e-9)).all()
assert one["time/ratio"].shape == one["phase"].shape and (one["time/seconds"][...] >= 0).all()
for name in ("iid/error", "norm", "time/flops", "smooth/exact_values"):
    assert one[name].attrs["units"] and one[name].attrs["long_name"], name

# Heads, one of them short.
rng = np.random.default_rng(1)
def softmax(s):
    s = np.exp(s - s.max(1, keepdims=True))
    return s / s.sum(1, keepdims=True)
q, k, v = rng.standard_normal((3, 2, 96, 8)).astype("f4")
with h5py.File("heads.h5", "w") as f:
    f["q"], f["k"], f["v"] = q, k, v
    f["length"] = np.array([96, 50])
    f["layer"] = np.array([0, 1]); f["head"] = np.array([1, 0]); f["example"] = np.array([7, 7])
    f.attrs["run"] = "some.h5"
with h5py.File("nan.h5", "w") as f:
    bad = k.copy(); bad[1, 3, 2] = np.nan
    f["q"], f["k"], f["v"] = q, bad, v
with h5py.File("none.h5", "w") as f:
    f["q"], f["k"] = q, k
with h5py.File("shape.h5", "w") as f:
    f["q"], f["k"], f["v"] = q, k, v[:, :50]
want = []
for h, n in ((0, 96), (1, 50)):
    a = softmax(q[h, :n].astype(float) @ k[h, :n].T.astype(float) / np.sqrt(8))
    b = np.full((n, n), 1 / n)
    y, z = a @ v[h, :n], b @ v[h, :n]
    want.append([np.mean((y - z) ** 2) / np.mean(y ** 2), np.linalg.norm(a - b) / np.linalg.norm(a), np.mean(y ** 2)]
                + list(np.linalg.svd(a, compute_uv=False)[:5]))
np.save("want.npy", want)
PY

run 2 fidelity --heads heads.h5 --set fidelity.kinds=mean,performer --set fidelity.features=16 \
    --set fidelity.trials=2 --set fidelity.spectrum=exact --set fidelity.ceiling=64 --out heads-out.h5
expect_code 0
expect_out '^captured head 1 \(layer 1, head 0, example 7\)'
python - <<'PY'
import h5py, numpy as np
want = np.load("want.npy")
with h5py.File("heads-out.h5") as f:
    assert f.attrs["source.run"] == "some.h5"
    e = f["captured/error"]
    assert e.dims[3][0].name == "/head"
    names = [s.decode() for s in f["statistic"]]
    for h in (0, 1):
        assert np.isclose(e[0, 0, 0, h, names.index("output_error")], want[h, 0], rtol=1e-5)
        assert np.isclose(e[0, 0, 0, h, names.index("frobenius")], want[h, 1], rtol=1e-12)
        assert np.isclose(f["captured/power"][0, h], want[h, 2], rtol=1e-12)
        assert np.allclose(f["captured/exact_values"][h, :5], want[h, 3:], rtol=0, atol=1e-12)
    assert (e[0, 0, 0] == e[0, 0, 1]).all() and (e[1, 0, 0] != e[1, 0, 1]).any()
    assert np.isnan(f["captured/exact_values"][1, 50:]).all()
PY

run 2 fidelity --heads nan.h5 --set fidelity.ceiling=64 --set fidelity.features=16
expect_code 5
expect_line 'nan.h5: head 1 holds NaN'
run 2 fidelity --heads none.h5
expect_code 3
expect_line 'none.h5'
run 2 fidelity --heads shape.h5
expect_code 3
expect_line "shape.h5: 'v' is not"
run 2 fidelity --heads missing.h5
expect_code 3
run 2 fidelity --set fidelity.kinds=rfa+fre
expect_code 2
expect_line "no 'fre' in 'rfa.fre'"
run 1 fidelity a.yaml b.yaml
expect_code 2
run 1 fidelity --set fidelity.lenght=3
expect_code 2
expect_line "fidelity.length"
run 1 fidelity --help
expect_code 0
