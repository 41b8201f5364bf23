# Helpers of tests/cli/test_*.sh: run the program as people do, look at code, stdout and stderr.
#
# CTest sets: RFA (program), MPIRUN, PYTHON (has h5py and numpy), SCRATCH (folder of this test),
# SOURCE (top of the tree). A test is a script under set -e that ends with 0:
#
#   . "$SOURCE/tests/cli/lib.sh"
#   fresh
#   run 2 data listops --out a.h5 --train 100
#   expect_code 0
#   run 2 data listops --out a.h5 --train none
#   expect_code 2
#   expect_line "--train"
set -euo pipefail

out=$SCRATCH/out   # stdout of the last run
err=$SCRATCH/err   # its stderr
command_line=none  # what it was
code=0             # its exit code

# fail TEXT: says what was wrong and everything about the last run, and ends the test.
fail()
{
    {
        printf 'FAILED: %s\n' "$*"
        printf 'command: %s\nexit code: %s\n' "$command_line" "$code"
        for stream in "$out" "$err"; do
            if [ -s "$stream" ]; then
                printf -- '--- %s\n' "$(basename "$stream")"
                tail -n 40 "$stream"
            fi
        done
    } >&2
    exit 1
}

# skip WHY: leaves the rest of the test out; in CI that is a failure.
skip()
{
    [ "${CI:-}" != true ] || fail "$*"
    echo "skipped: $*"
    exit 77
}

# fresh: an empty working folder, $SCRATCH/here, and into it.
fresh()
{
    rm -rf "$SCRATCH"
    mkdir -p "$SCRATCH/here"
    cd "$SCRATCH/here"
}

# run N ARGS...: the program on N ranks by mpirun (N = 0: started directly, without mpirun) for at
# most RUN_SECONDS (120). Sets code, $out and $err and never fails by itself, unless it hangs.
# Variables in front go to every rank: RFA_FAULT=step@1 run 2 train quick.yaml
run()
{
    local ranks=$1 launch=()
    shift
    if [ "$ranks" -gt 0 ]; then
        launch=("$MPIRUN" -q -n "$ranks" --oversubscribe)
    fi
    command_line="rfa $* ($ranks ranks)"
    code=0
    timeout -k 5 "${RUN_SECONDS:-120}" "${launch[@]}" "$RFA" "$@" >"$out" 2>"$err" </dev/null || code=$?
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        fail "still running after ${RUN_SECONDS:-120} s"
    fi
}

# expect_code N: the last run ended with exit code N.
expect_code()
{
    [ "$code" = "$1" ] || fail "exit code $code, expected $1"
}

# expect_line REGEX: the last run wrote exactly one line "rfa: error: ...", and it matches (grep -E).
expect_line()
{
    local lines
    lines=$(grep -c '^rfa: error: ' "$err" || true)
    [ "$lines" = 1 ] || fail "$lines error lines, expected one"
    grep '^rfa: error: ' "$err" | grep -qE -- "$1" || fail "the error line does not match: $1"
}

# expect_out REGEX: some line of stdout matches (grep -E).
expect_out()
{
    grep -qE -- "$1" "$out" || fail "no line of stdout matches: $1"
}

# value NAME: what follows "NAME " on the one line of stdout that begins with it: value digest
value()
{
    local lines
    lines=$(grep "^$1 " "$out" || true)
    [ -n "$lines" ] && [ "$(wc -l <<<"$lines")" = 1 ] || fail "not exactly one line '$1 ...'"
    printf '%s\n' "${lines#"$1 "}"
}

# python [ARGS...]: the Python that has h5py; a program on its stdin that exits with 0 is a success.
python()
{
    "$PYTHON" "$@" || fail "the Python check above"
}
