# "Split" means split: of P ranks that share a sequence each holds and computes about 1/P, beside what
# the model itself takes; and every rank reads only its own tokens.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out d.h5 --train 64 --val 4 --test 4
expect_code 0
for config in rfa rfa-causal softmax; do
    for ranks in 1 2 4; do
        run $ranks train "$SOURCE/configs/lra/listops/$config.yaml" --out $config.$ranks.h5 \
            --set data.file=d.h5 --set train.warmup=1 --set train.batch=32 --set train.steps=2
        expect_code 0
    done
    python - $config <<'PYTHON'
import h5py, sys
kind = sys.argv[1]
runs = {p: h5py.File(f"{kind}.{p}.h5").attrs for p in (1, 2, 4)}
model = 4 * 8 * runs[1]["parameters"]  # value, gradient, two moments, exact sums, in bytes, with room
bad = False
for p in (2, 4):
    memory = (runs[p]["peak_bytes_of_a_rank"] - model) / (runs[1]["peak_bytes_of_a_rank"] - model)
    flops = runs[p]["gemm_flops_of_a_rank"] / runs[1]["gemm_flops_of_a_rank"]
    total = runs[p]["gemm_flops"] / runs[1]["gemm_flops"]
    print(f"{kind}, {p} ranks: memory {memory:.3f}, flops of a rank {flops:.3f}, of all {total:.4f}")
    bad |= memory > 1.15 / p or flops > 1.15 / p or abs(total - 1) > 0.01
sys.exit(int(bad))
PYTHON
done
