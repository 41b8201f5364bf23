#!/usr/bin/env bash
# Bad days of disks and files: full at every kind of write, read-only, damaged, replaced, shared by two
# jobs; and every fault point of the sources on the first and on the last rank. Each time: the right exit
# code, one line that names the file, nothing half-written, what was good before still loads, and when the
# cause is gone --resume ends with the digest and rows of a run without trouble.
. "$(dirname "$0")/lib.sh"

# go_on NAME RANKS ARGS...: to the end, from the checkpoint if there is one.
go_on()
{
    local name=$1 ranks=$2 how=--overwrite
    shift 2
    [ ! -e "$name.ckpt" ] && [ ! -e "$name.ckpt.prev" ] || how=--resume
    run "$ranks" train quick.yaml --out "$name.h5" $how "$@"
    expect_whole "$name"
}

no_temporary()
{
    [ -z "$(find . -name '*.tmp')" ] || fail "a temporary file is left: $(find . -name '*.tmp')"
}

take() # NAME: a copy of the stopped run
{
    local suffix
    rm -f "$1".*
    for suffix in h5 jsonl ckpt ckpt.prev best.ckpt best.ckpt.prev; do
        [ ! -e ../stopped.$suffix ] || cp ../stopped.$suffix "$1.$suffix"
    done
}

sums() # NAME: of all files of a run
{
    (cd "$(dirname "$1")" && sha256sum "$(basename "$1")".*)
}

resize() # SIZE [ro|rw]
{
    mount -o "remount,${2:-rw},size=$1" full || fail "the tmpfs can't be made $*"
}

fill()
{
    dd if=/dev/zero of=full/fill bs=4k 2>/dev/null || true
}

# Which write fails first on a full disk depends on the size; every kind must have.
full_disk()
{
    local size written when kind how
    declare -A met=()
    tiny 90 80 50
    run 2 train quick.yaml --out whole.h5
    keep_whole
    for ((size = 16; ; size += 12)); do # KiB; each write that counts below takes more than these steps
        rm -f full/*
        resize ${size}k
        run 2 train quick.yaml --out full/run.h5
        [ "$code" != 0 ] || break
        expect_code 3
        expect_line 'full/run\.(h5|jsonl|ckpt|best\.ckpt).*: No space left on device'
        no_temporary
        written=$(grep '^rfa: error: ' "$err" | grep -oE 'full/run\.(h5|jsonl|ckpt|best\.ckpt)' | head -n 1)
        when=start # or: how many checkpoints are there
        [ ! -e full/run.h5 ] || when=$(find full -name '*.ckpt*' | wc -l)
        loads full/run.h5 full/run*.ckpt full/run*.prev
        [ -z "${met[$written.$when]:-}" ] || continue
        met[$written.$when]=1
        resize 8m
        go_on full/run 2
    done
    for kind in run.h5.start run.jsonl.0 run.ckpt.0 run.h5.1 run.best.ckpt.1 run.ckpt.2 run.h5.3 \
        run.ckpt.3; do
        [ -n "${met[full/$kind]:-}" ] || fail "no size failed at $kind: ${!met[*]}"
    done

    # Under a run that is complete: it stands, whatever is tried, and so do its checkpoints.
    sums full/run >before
    fill
    run 2 train quick.yaml --out full/run.h5 --overwrite
    expect_code 3
    expect_line 'full/run\.h5.*: No space left on device'
    sums full/run | cmp -s before - || fail "--overwrite changed files on a full disk"
    run 2 train quick.yaml --out full/run.h5 --resume # finished: nothing is left to do
    expect_whole full/run
    sums full/run | cmp -s before - || fail "--resume changed files of a finished run"
    run 2 train quick.yaml --out full/sub/new.h5
    expect_code 3
    expect_line 'full/sub.*: No space left on device'
    rm full/fill
    go_on full/run 3

    # Data sets.
    rm -rf full/*
    for size in 4k 20k 28k; do
        resize $size
        run 2 data listops --out full/d.h5 --train 100 --val 40 --test 40 --max-length 600
        expect_code 3
        expect_line 'full/d\.h5.*: No space left on device'
        [ -z "$(ls -A full)" ] || fail "left on the full disk: $(ls -A full)"
    done
    resize 8m
    cp d.h5 full/d.h5
    fill
    run 2 data listops --out full/d.h5 --train 100 --val 40 --test 40 --force
    expect_code 3
    expect_line 'full/d\.h5.*: No space left on device'
    cmp d.h5 full/d.h5 || fail "the former data set is gone"
    rm -rf full/*
}

# Reading goes on, writing says which file.
read_only_disk()
{
    local how
    take full/run
    cp d.h5 full/d.h5
    sums full/run >before
    resize 8m ro
    loads full/run.h5 full/run.ckpt full/d.h5
    run 2 eval full/run.h5 --data full/d.h5
    expect_code 0
    for how in --resume --overwrite; do
        run 2 train quick.yaml --out full/run.h5 $how
        expect_code 3
        expect_line 'full/run\.(h5|jsonl).*: Read-only file system'
    done
    run 2 train quick.yaml --out full/new.h5
    expect_code 3
    expect_line 'full/new.*: Read-only file system'
    run 2 data listops --out full/e.h5 --train 10
    expect_code 3
    expect_line 'full/e\.h5.*: Read-only file system'
    sums full/run | cmp -s before - || fail "files changed on a read-only disk"
    resize 8m rw
    go_on full/run 2
}

flip() # FILE: one bit in the middle
{
    "$PYTHON" - "$1" <<'PYTHON'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)
PYTHON
}
damage() # KIND FILE
{
    case $1 in
    truncated) truncate -s $(($(stat -c %s "$2") * 2 / 3)) "$2" ;;
    empty) : >"$2" ;;
    flipped) flip "$2" ;;
    text) echo 'something else' >"$2" ;;
    run) cp ../stopped.h5 "$2" ;;
    data) cp ../d.h5 "$2" ;;
    missing) rm "$2" ;;
    esac
}

# Of a damaged checkpoint the one before is taken, with a warning; of two there is one line.
damaged_checkpoint()
{
    local kind
    for kind in truncated empty flipped text run data missing; do
        take part
        damage $kind part.ckpt
        go_on part 2
        [ "$(grep -c '^rfa: warning: .*part\.ckpt: .*the one before, of step' "$err")" -ge 1 ] ||
            fail "no warning of a $kind checkpoint"
        take part
        damage $kind part.ckpt
        damage $kind part.ckpt.prev
        run 0 train quick.yaml --out part.h5 --resume
        expect_code 3
        expect_line 'part\.ckpt'
    done
}

# Of a record there is no other to fall back to; lines that are torn are left out.
damaged_record()
{
    local kind
    for kind in truncated empty flipped text data; do
        take part
        damage $kind part.h5
        run 0 train quick.yaml --out part.h5 --resume
        expect_code 3
        expect_line 'part\.h5'
        loads part.ckpt part.ckpt.prev
    done
    take part
    printf '{"step":' >>part.jsonl
    go_on part 2
}

# Damaged data, other data under the same name, a damaged configuration.
damaged_input()
{
    local kind
    refused() # CODE REGEX [CONFIGURATION]
    {
        take part
        run 2 train "${3:-quick.yaml}" --out part.h5 --resume
        expect_code "$1"
        expect_line "$2"
        cmp ../stopped.ckpt part.ckpt || fail "the checkpoint changed"
    }
    for kind in truncated empty text run missing; do
        damage $kind d.h5
        refused 3 'd\.h5'
        cp ../d.h5 d.h5
    done
    "$PYTHON" -c 'import h5py; h5py.File("d.h5", "r+")["train/tokens"][:] = 255'
    refused 3 'd\.h5.*train/tokens.*vocabulary'
    run 1 data listops --out d.h5 --force --seed 7 --train 60 --val 20 --test 20 --min-length 20 \
        --max-length 60 --max-depth 4
    expect_code 0
    refused 2 'part\.h5 was started on data with digest .*d\.h5'
    cp ../d.h5 d.h5
    head -c 3000 d.h5 >bytes.yaml
    refused 2 'bytes\.yaml' bytes.yaml
    : >nothing.yaml
    refused 2 'nothing\.yaml is empty' nothing.yaml
    printf 'data: {file: d.h5\nmodel: ]' >broken.yaml
    refused 2 'broken\.yaml:' broken.yaml
    mkdir folder.yaml
    refused 3 'folder\.yaml' folder.yaml
    go_on part 2
}

other_ranks()
{
    local variant
    for variant in 1 2 3 4 '4 --set parallel.sequence=2' '2 --set parallel.sequence=1'; do
        take part
        go_on part $variant
    done
}

# Every fault point of the sources: point, exit code, and what is said with a fault on rank R. Those that
# begin with "rank 0" are on that rank alone, and must not strike elsewhere.
points='
data.part         3  rank R: injected fault at data.part
dataset.open      3  rank R: injected fault at dataset.open
dataset.read      3  rank R: injected fault at dataset.read
exchange.memory   4  rank R: injected fault at exchange.memory
halo.memory       4  rank R: injected fault at halo.memory
train.step        3  rank R: injected fault at train.step
train.nan         5  step [0-9]+: .*diverged
train.drift      85  the parameters of rank R are not those of the others
run.write         3  rank 0: .*part\.h5 is not written: injected fault at run.write
checkpoint.write  3  rank 0: .*part\.ckpt is not written: injected fault at checkpoint.write
checkpoint.read   0  rank 0: falls back, as below
doctor.gemm       1  rank R: injected fault at doctor.gemm
doctor.exchange   1  rank R: injected fault at doctor.exchange
doctor.hang       1  exchange +no answer within 3 s from all ranks
doctor.parallel   1  rank R: injected fault at doctor.parallel
doctor.rename     1  rank 0: injected fault at doctor.rename
'

# strike POINT RANK: the command that meets it.
strike()
{
    case $1 in
    doctor.hang) RFA_FAULT=$1@$2 run 3 doctor . --seconds 3 ;;
    doctor.*) RFA_FAULT=$1@$2 run 3 doctor . ;;
    data.*) # more than one part a rank
        mkdir -p texts
        for ((i = 0; i < 5000; i++)); do
            printf '%d\ttext %d\n' $((i % 2)) $i
        done >texts/train.tsv
        head -n 20 texts/train.tsv >texts/test.tsv
        RFA_FAULT=$1@$2 run 3 data text --from texts --out texts.h5
        ;;
    halo.*) RFA_FAULT=$1@$2 run 3 train quick.yaml --out eva.h5 --overwrite --set attention.kind=eva ;;
    *) RFA_FAULT=$1@$2 run 3 train quick.yaml --out part.h5 --resume --set train.check_every=1 ;;
    esac
}

fault() # POINT
{
    local point want line rank
    read -r point want line <<<"$(grep "^$1 " <<<"$points")"
    for rank in 0 2; do
        take part
        strike "$point" $rank
        if [ $rank = 2 ] && [[ $line == 'rank 0:'* ]]; then
            expect_code 0
            [[ $point == doctor.* ]] || expect_whole part
            continue
        fi
        expect_code "$want"
        no_temporary
        case $point in
        doctor.*)
            expect_line 'doctor: '
            expect_out "^FAIL .*${line/rank R/rank $rank}"
            continue
            ;;
        checkpoint.read)
            grep -q "rfa: warning: .*injected fault at $point.*the one before" "$err" ||
                fail "no warning"
            expect_whole part
            take part
            rm part.ckpt.prev
            strike "$point" $rank
            expect_code 3
            expect_line "rank 0: .*injected fault at $point"
            ;;
        train.drift) # stopped, not failed
            grep -qE "${line/rank R/rank $rank}" "$err" || fail "the rank is not named"
            ;;
        *) expect_line "${line/rank R/rank $rank}" ;;
        esac
        cmp ../stopped.ckpt part.ckpt || fail "the checkpoint changed"
        loads part.h5
    done
    [[ $point == doctor.* ]] || go_on part 2
}

# at_once COMMAND...: each in a folder of its own, three at the same time, since a failed job spends a
# second waiting.
at_once()
{
    local task running=0 failed=0
    for task in "$@"; do
        if [ $running = 3 ]; then
            wait -n || failed=1
            running=$((running - 1))
        fi
        (
            mkdir -p "${task// /.}"
            cd "${task// /.}"
            out=$PWD/out err=$PWD/err
            cp ../d.h5 ../quick.yaml ../whole .
            $task
        ) &
        running=$((running + 1))
    done
    while [ $running -gt 0 ]; do
        wait -n || failed=1
        running=$((running - 1))
    done
    [ $failed = 0 ] || exit 1
}

fresh
grep -rhoE 'rfa_fault\("[a-z._]+"' "$SOURCE/src" --include='*.c' | cut -d'"' -f2 | sort -u >in_sources
awk 'NF { print $1 }' <<<"$points" | sort >in_test
cmp -s in_sources in_test || fail "the fault points and this test differ: $(diff in_sources in_test)"
for folder in full_disk read_only_disk; do
    mkdir -p $folder/full
    mount -t tmpfs -o size=8m tmpfs $folder/full || skip "needs the right to mount a tmpfs"
    at_exit+=("umount '$PWD/$folder/full'")
done

# A run that was killed after its first checkpoints, stopped.*: from it most cases go on.
tiny_data
tiny 90 20 10
run 2 train quick.yaml --out whole.h5
keep_whole
start 2 train quick.yaml --out stopped.h5
wait_for [ -e stopped.ckpt.prev ]
kill_job $(job_pids)
rm -f stopped.*.tmp
[ -e stopped.ckpt ] || cp stopped.ckpt.prev stopped.ckpt # between the two renames

# Two jobs on one output: the second is refused, the first does not notice.
start 2 train quick.yaml --out twice.h5
wait_for [ -e twice.ckpt.prev ]
pids=$(job_pids)
kill -STOP $pids
sums twice >before
for how in --resume --overwrite; do
    run 0 train quick.yaml --out twice.h5 $how
    expect_code 2
    expect_line 'twice\.h5 is being written by another run'
done
sums twice | cmp -s before - || fail "the second job changed files of the first"
kill -CONT $pids
wait_job
expect_whole twice

mapfile -t all_points <in_test
at_once full_disk damaged_checkpoint damaged_input read_only_disk damaged_record other_ranks \
    "${all_points[@]/#/fault }"
echo "${#all_points[@]} fault points; full, read-only and damaged disks: all well in $SECONDS s"
