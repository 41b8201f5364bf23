#!/usr/bin/env bash
# rfa data listops: generate, check by an independent evaluator, import, and fail properly.
. "$SOURCE/tests/cli/lib.sh"
oracle=$SOURCE/tests/cli/listops_oracle.py
fresh
small=(--train 300 --val 50 --test 50)

# The same file on any number of ranks.
digests=()
for ranks in 0 1 2 3; do
    run "$ranks" data listops --out "n$ranks.h5" "${small[@]}"
    expect_code 0
    digests+=("$(value digest)")
    expect_out '^train 300 examples, [0-9]+ tokens, lengths 5[0-9]+ to 1[0-9]+, mean [0-9]+; labels'
    expect_out '^val 50 examples'
    expect_out '^test 50 examples'
    [ ! -e "n$ranks.h5.tmp" ] || fail "a temporary file is left"
done
[ "$(printf '%s\n' "${digests[@]}" | sort -u | wc -l)" = 1 ] || fail "digests: ${digests[*]}"
python "$oracle" n1.h5
python "$oracle" --same n1.h5 n0.h5
python "$oracle" --same n1.h5 n2.h5
python "$oracle" --same n1.h5 n3.h5

# Another seed gives other trees; other limits are kept to.
run 2 data listops --out seed.h5 "${small[@]}" --seed 2
expect_code 0
[ "$(value digest)" != "${digests[0]}" ] || fail "seed 2 gave the digest of seed 1"
run 1 data listops --out deep/er/short.h5 --train 200 --val 20 --test 20 \
    --min-length 10 --max-length 40 --max-depth 4 --max-args 4 --p-op 0.4
expect_code 0
python "$oracle" deep/er/short.h5 --export export
python - <<'PY'
import h5py
f = h5py.File("deep/er/short.h5")
a = f.attrs
assert (a["min_length"], a["max_length"], a["max_depth"], a["max_args"]) == (10, 40, 4, 4)
assert a["p_op"] == 0.4 and a["seed"] == 1 and a["source"] == "generated"
PY

# Few different trees: duplicates are dropped, and a wish beyond all trees is refused.
run 2 data listops --out few.h5 --train 150 --val 20 --test 20 --max-depth 2 --max-args 2 \
    --min-length 3 --max-length 5
expect_code 0
expect_out 'and [1-9][0-9]* of these were duplicates'
python "$oracle" few.h5
run 2 data listops --out all.h5 --train 1000 --max-depth 2 --max-args 2 --min-length 3 --max-length 5
expect_code 2
expect_line 'only 400 of 5000 different trees'
[ ! -e all.h5 ] && [ ! -e all.h5.tmp ] || fail "a file is left"

# Exported as the released files are, imported again: the same ids.
run 2 data listops --from export --out back.h5
expect_code 0
expect_out '^duplicates 0 within splits, 0 across splits'
python "$oracle" back.h5
python "$oracle" --same deep/er/short.h5 back.h5
# The archive's layout, renamed brackets, line ends of Windows; duplicates are counted.
nested=archive/lra_release/lra_release/listops-1000
mkdir -p $nested
cp export/*.tsv $nested
sed -i 's/ \] / X /g; s/$/\r/' $nested/basic_train.tsv
sed -n 2p export/basic_train.tsv >>$nested/basic_val.tsv
sed -n 2,4p export/basic_test.tsv >>$nested/basic_test.tsv
run 1 data listops --from archive --out archive.h5
expect_code 0
expect_out '^duplicates 3 within splits, 1 across splits'
python "$oracle" archive.h5

# What is wrong with a file is said with its line.
expect_damage() # SED_PROGRAM REGEX
{
    rm -rf damaged
    cp -r export damaged
    sed -i "$1" damaged/basic_val.tsv
    run 0 data listops --from damaged --out damaged.h5
    expect_code 3
    expect_line "damaged/basic_val.tsv$2"
    [ ! -e damaged.h5 ] && [ ! -e damaged.h5.tmp ] || fail "a file is left"
}
expect_damage '5s/\t.*/\tA/' ":5: the label is 'A'"
expect_damage '7y/0123456789/1234567890/;7s/\t.*/\t0/;7s/(.*)/[MAX 3 ]/' ':7: the label is 0, but .* 3'
expect_damage '3s/\]/}/' ":3: unknown token '}'"
expect_damage '4s/\] )\t/)\t/' ':4: '
expect_damage '2s/\t/ /' ':2: 1 column, expected 2'
expect_damage '1d' ':1: the header'
expect_damage '1!d' ': no examples'
expect_damage 'd' ': the file is empty'
rm damaged/basic_val.tsv damaged/basic_test.tsv
run 1 data listops --from damaged --out damaged.h5
expect_code 3
expect_line 'missing basic_val.tsv, basic_test.tsv; found basic_train.tsv'
mkdir empty
run 1 data listops --from empty
expect_code 3
expect_line 'basic_train.tsv, basic_val.tsv, basic_test.tsv are missing'
run 1 data listops --from nowhere
expect_code 3
expect_line 'nowhere: .*No such file'

# An existing file stays, unless --force.
before=$(sha256sum <n1.h5)
run 2 data listops --out n1.h5 "${small[@]}" --seed 9
expect_code 2
expect_line 'n1.h5: exists already; --force'
[ "$(sha256sum <n1.h5)" = "$before" ] || fail "the file was touched"
run 2 data listops --out n1.h5 "${small[@]}" --seed 9 --force
expect_code 0
[ "$(sha256sum <n1.h5)" != "$before" ] || fail "the file was not replaced"

# Killed on the way: no file under the final name, and the next run is not in trouble.
"$RFA" data listops --out killed.h5 --train 90000 >/dev/null 2>&1 &
victim=$!
for _ in $(seq 100); do
    [ ! -e killed.h5.tmp ] || break
    sleep 0.05
done
[ -e killed.h5.tmp ] || fail "no temporary file appeared"
sleep 0.3
kill -9 "$victim"
wait "$victim" 2>/dev/null || true
[ ! -e killed.h5 ] || fail "a killed run left its file"
run 1 data listops --out killed.h5 "${small[@]}"
expect_code 0
[ ! -e killed.h5.tmp ] || fail "a temporary file is left"

# Typing errors: one line, exit 2, before anything is written.
ranks=2
expect_usage() # REGEX ARGS...
{
    local regex=$1
    shift
    run "$ranks" data "$@"
    expect_code 2
    expect_line "$regex"
    [ ! -s "$out" ] || fail "something on stdout"
}
expect_usage "unknown option '--trian=3'" listops --trian=3
expect_usage "unknown option '-x'" listops -x
ranks=0 # mpirun takes a second to end after a failure
expect_usage '--train takes a value' listops --train
expect_usage '--force takes no value' listops --force=yes
expect_usage "--train '4x': not an integer" listops --train 4x
expect_usage "--val '2.9': not an integer" listops --val 2.9
expect_usage '--test 0: not in 1 to' listops --test 0
expect_usage '--seed -1: not in' listops --seed -1
expect_usage '--train 99999999999999999999: not in' listops --train 99999999999999999999
expect_usage "--p-op '0.3x': not a number" listops --p-op 0.3x
expect_usage '--p-op is 1.5' listops --p-op 1.5
expect_usage '--max-depth is 1' listops --max-depth 1
expect_usage '--max-args is 1' listops --max-args 1
expect_usage '--min-length is 100' listops --min-length 100 --max-length 101
expect_usage '--max-depth 3 and --max-args 10 give at most 122 tokens' listops --max-depth 3
expect_usage "unexpected 'more'" listops more
expect_usage '--from imports files, so --seed' listops --from export --seed 3
expect_usage '--out: a path of 0 bytes' listops --out ''
expect_usage "unknown task 'lisptops'" lisptops
expect_usage 'which task'
[ ! -e data ] || fail "a wrong command made a folder"

run 2 data listops --help
expect_code 0
expect_out '^Usage: rfa data listops \[OPTION'
expect_out 'mpirun -n 8 rfa data listops'
for option in out force from validation train val test seed min-length max-length max-depth max-args p-op help; do
    expect_out "--$option"
done
[ "$(grep -c '^Usage' "$out")" = 1 ] || fail "the help is printed more than once"
run 1 data --help
expect_code 0
expect_out 'listops'

# Places that can't be written.
run 2 data listops --out export/basic_val.tsv/x.h5 "${small[@]}"
expect_code 3
expect_line 'basic_val.tsv'
run 2 data listops --out export "${small[@]}"
expect_code 2
expect_line 'export: is a folder'

# A full disk: exit 3, one line that says so, and nothing left.
mkdir disk
if mount -t tmpfs -o size=1m none disk 2>/dev/null; then
    trap 'umount "$SCRATCH/here/disk"' EXIT
    for ranks in 1 2; do
        run "$ranks" data listops --out disk/full.h5 --train 3000 --val 50 --test 50
        expect_code 3
        expect_line 'disk/full.h5.tmp: .*No space left on device'
        [ -z "$(ls -A disk)" ] || fail "left on the full disk: $(ls -A disk)"
    done
    run 1 data listops --out disk/full.h5 "${small[@]}"
    expect_code 0
    before=$(sha256sum <disk/full.h5)
    run 1 data listops --out disk/full.h5 --train 3000 --force
    expect_code 3
    [ "$(sha256sum <disk/full.h5)" = "$before" ] || fail "the former file is gone"
    python "$oracle" disk/full.h5
else
    echo "not run: a full disk, since a small file system can't be mounted here"
    [ -z "${CI:-}" ] || exit 1
fi

# Trees with labels, as spinn has them: label first, no header; every label is checked.
mkdir trees
python - <<'PY'
rows = ["3\t3", "9\t( ( ( [MAX 2 ) 9 ) ] )", "1\t( ( ( [MED 1 ) 2 ) ] )", "4\t( ( ( [MED 0 ) 9 ) ] )", "1\t[SM 5 6 ]"]
for name, n in (("train", 40), ("test", 10)):
    open(f"trees/{name}_d20s.tsv", "w").write("".join(rows[i % 5] + "\n" for i in range(n)))
PY
run 2 data listops --from trees --out trees.h5
expect_code 0
expect_out '^train 36 examples'
expect_out '^val 4 examples'
digest=$(value digest)
run 0 data listops --from trees --out trees0.h5
[ "$(value digest)" = "$digest" ] || fail "trees: other bytes on another number of ranks"
sed -i '7s/^9/8/' trees/train_d20s.tsv
run 0 data listops --from trees --out trees1.h5
expect_code 3
expect_line "trees/train_d20s.tsv:7: the label is 8, but the tree's value is 9"
