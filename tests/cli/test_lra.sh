#!/usr/bin/env bash
# Each task of the Long Range Arena from raw material to a result, in both protocols: every file of
# configs/lra is planned or run on its task's data, the parameters are as many as published (P16), the
# digests are equal on 1 and 2 ranks, and padding is hardly computed with.
. "$SOURCE/tests/cli/lib.sh"
fresh
configs=$SOURCE/configs/lra

cat >make.py <<'PY'
import os
import random
import struct

draw = random.Random(3)
words = ["long", "range", "arena", "caf\u00e9", "a", "of", "\u20ac", '"quoted"']
text = lambda most: " ".join(draw.choice(words) for _ in range(draw.randint(3, most)))
for folder in ("text", "pairs", "idx"):
    os.makedirs(folder)
for split, n in (("train", 60), ("test", 20)):
    open(f"text/{split}.tsv", "w").write("".join(f"{i % 2}\t{text(300)}\n" for i in range(n)))
for split in ("train", "eval", "test"):
    open(f"pairs/new_aan_pairs.{split}.tsv", "w").write(
        "".join(f"{i % 2}.0\tA{i}\tB{i}\t{text(200)}\t{text(300)}\n" for i in range(20)))
for prefix, n in (("train", 40), ("t10k", 10)):
    pixels = bytes(draw.randrange(256) for _ in range(n * 32 * 32))
    open(f"idx/{prefix}-images-idx3-ubyte", "wb").write(struct.pack(">IIII", 0x803, n, 32, 32) + pixels)
    open(f"idx/{prefix}-labels-idx1-ubyte", "wb").write(struct.pack(">II", 0x801, n) + bytes(i % 10 for i in range(n)))
PY
python make.py
small=(--train 40 --val 10 --test 10)
run 2 data listops --out listops.h5 "${small[@]}" --min-length 20 --max-length 150 --max-depth 6
expect_code 0
run 2 data text --from text --out text.h5
expect_code 0
run 2 data retrieval --from pairs --out retrieval.h5
expect_code 0
run 2 data image --from idx --out image.h5
expect_code 0
run 2 data pathfinder --out pathfinder.h5 "${small[@]}"
expect_code 0
run 2 data pathx --out pathx.h5 --train 4 --val 2 --test 2
expect_code 0

# counted N: parameters, as the program says them.
counted()
{
    grep -hoE '[0-9]+ parameters' "$out" "$err" | head -n 1 | grep -qx "$1 parameters" || fail "not $1 parameters"
}

# Of the small models with softmax (Xiong et al. 2021): equal models have equal counts.
declare -A published=([listops]=209802 [text]=370562 [retrieval]=395138 [image]=174986 [pathfinder]=173954)
few=(--set train.batch=2 --set train.micro_batch=0 --set train.steps=2 --set train.warmup=1
    --set train.evaluate_examples=2 --set train.checkpoint_every=0)
for task in listops text retrieval image pathfinder pathx; do
    data=(--set "data.file=$task.h5")
    for file in "$configs/$task"/{small,base}-*.yaml; do
        name=$task-$(basename "$file" .yaml)
        case $name in
        *-rfa)
            digests=()
            for ranks in 1 2; do
                run "$ranks" train "$file" "${data[@]}" "${few[@]}" --out "$name-$ranks.h5"
                expect_code 0
                digests+=("$(value digest)")
            done
            [ "${digests[0]}" = "${digests[1]}" ] || fail "$name: ${digests[*]}"
            ;;
        *-small-softmax)
            run 2 train "$file" "${data[@]}" "${few[@]}" --out "$name.h5"
            expect_code 0
            [ -z "${published[$task]:-}" ] || counted "${published[$task]}"
            ;;
        *)
            run 2 train "$file" "${data[@]}" "${few[@]}" --dry-run
            expect_code 0
            padding=$(sed -n 's/^padding: \([0-9.]*\) .*/\1/p' "$out")
            # Blocks of 16 rows at the end of 8 segments: much where texts are as short as here.
            [ "${task/listops/}" = "" ] || awk -v p="$padding" 'BEGIN { exit !(p < 30) }' || fail "padding: $padding %"
            ;;
        esac
    done
done
