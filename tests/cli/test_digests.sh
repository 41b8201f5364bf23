# The same digests, step by step, on any number of ranks, any grid, any thread count, any pass size,
# with both algorithms of the exchange: 20 steps of the real model on real ListOps, dropout on.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out d.h5 --train 60 --val 20 --test 21
expect_code 0

# digests RUN: one digest a step, then the loss of each evaluation.
digests()
{
    python -c 'import h5py, sys
f = h5py.File(sys.argv[1])
print([hex(d) for d in f["steps/digest"][:]], f["evaluations/loss"][:].tolist())' "$1"
}

# train NAME RANKS ARGS...: one run; its digests must be those of the kind.
train()
{
    local name=$1 ranks=$2
    shift 2
    run "$ranks" train "$SOURCE/configs/lra/listops/$config.yaml" --out "$name.h5" --overwrite \
        --set data.file=d.h5 --set train.steps=20 --set train.warmup=10 --set train.batch=6 \
        --set train.evaluate_every=10 "$@"
    expect_code 0
    expect_out '^test accuracy 0\.[0-9]{4} \([0-9]+/21\)$'
    value digest >>digest.$config
    digests "$name.h5" >>steps.$config
    [ "$(sort -u digest.$config | wc -l)" = 1 ] || fail "the final digest of $name differs: $(cat digest.$config)"
    [ "$(sort -u steps.$config | wc -l)" = 1 ] || fail "the digests of $name differ: $(cat steps.$config)"
}

for config in rfa softmax rfa-causal; do
    train one 1
    [ "$(tr , '\n' <steps.$config | grep -o '0x[0-9a-f]*' | sort -u | wc -l)" = 20 ] ||
        fail "20 steps must have 20 digests"
    train two 2
    train three 3
    train four 4
    train grid 4 --set parallel.sequence=2 --set parallel.exchange=transposed
    train threads 1 --set parallel.threads=2 --set train.micro_batch=2
done
config=rfa
train five 5
train data 2 --set parallel.sequence=1 --set train.micro_batch=2
config=rfa-causal # where auto takes exscan on 2 and 4 ranks
train transposed 4 --set parallel.exchange=transposed
train grid_threads 2 --set parallel.sequence=1 --set parallel.threads=2
# Reductions that a site forces, other ones than those tested by default.
OMPI_MCA_coll_tuned_use_dynamic_rules=1 OMPI_MCA_coll_tuned_allreduce_algorithm=4 \
    OMPI_MCA_coll_tuned_exscan_algorithm=2 train forced 4
OMPI_MCA_coll=^tuned OMPI_MCA_btl=self,tcp train basic 3

# A forced exscan whose order depends on the rank count claims nothing.
config=rfa
run 3 train "$SOURCE/configs/lra/listops/rfa.yaml" --out fast.h5 --set data.file=d.h5 \
    --set train.steps=2 --set train.warmup=1 --set train.batch=8 --set parallel.exchange=exscan
expect_code 0
expect_out '^test accuracy'
grep -q '^digest' "$out" && fail "a forced exscan must print no digest"
exit 0
