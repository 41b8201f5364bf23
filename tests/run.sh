#!/usr/bin/env bash
# Everything that must hold before a change goes in: rooms, format, static analysis, warnings of
# gcc and clang, all tests, and the unit tests again under the address and undefined-behaviour
# sanitizers. About 50 minutes on two cores, of which 4 are for the fuzz targets.
#
#   bash tests/run.sh              all of it
#   bash tests/run.sh -R REGEX     builds, and runs the tests whose names match; nothing else
#
# Tests that lack rights or tools here (network namespaces, SLURM, a full disk, libFuzzer) are skipped and
# named; with CI=true a test that was skipped or couldn't run is a failure.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

regex=
case ${1:-} in
'') ;;
-R) regex=${2:?usage: bash tests/run.sh [-R REGEX]} ;;
*)
    echo "usage: bash tests/run.sh [-R REGEX]" >&2
    exit 2
    ;;
esac

. jobs/setup.sh tests
jobs=$(getconf _NPROCESSORS_ONLN) # nproc would follow OMP_NUM_THREADS
logs=build/logs
mkdir -p "$logs"

# check NAME COMMAND...: one line with its time; the log is shown only when it fails.
check()
{
    local name=$1 start=$SECONDS code
    shift
    printf '%-44s' "$name"
    # Not "if ! (...)": there bash would ignore set -e, and a failed build would be tested.
    set +e
    (set -e; "$@") >"$logs/${name%% *}.log" 2>&1
    code=$?
    set -e
    if [ "$code" != 0 ]; then
        printf 'FAILED after %d s\n' $((SECONDS - start))
        tail -n 100 "$logs/${name%% *}.log"
        exit 1
    fi
    printf '%4d s\n' $((SECONDS - start))
}

c_files()
{
    find src tests -name '*.[ch]' -print0
}

scripts_parse()
{
    local file
    while read -r file; do
        bash -n "$file"
    done < <(find jobs tests .ci -name '*.sh' -o -path .ci/run)
}

format()
{
    c_files | xargs -0 clang-format --dry-run --Werror
}

run_cppcheck()
{
    cppcheck --quiet --error-exitcode=1 -j "$jobs" --enable=warning,performance,portability \
        --inline-suppr --library=posix --library=gnu -I src -I tests src tests
}

configure()
{
    cmake --preset "$1" -DPYTHON="$RFA_PYTHON"
}

build()
{
    configure "$1"
    cmake --build --preset "$1" -j "$jobs"
}

# The compiler's commands, each file once (the library is built in float and in double).
tidy()
{
    mkdir -p build/tidy
    "$RFA_PYTHON" - <<'PYTHON'
import json
commands = {c["file"]: c for c in reversed(json.load(open("build/test/compile_commands.json")))}
json.dump(list(commands.values()), open("build/tidy/compile_commands.json", "w"))
open("build/tidy/files", "w").write("\n".join(sorted(commands)) + "\n")
PYTHON
    xargs -d '\n' -P "$jobs" -n 4 clang-tidy --quiet -p build/tidy <build/tidy/files
}

# clang sees other things than gcc: the library and the program must compile without a warning.
build_clang()
{
    cmake -S . -B build/clang -DCMAKE_C_COMPILER=clang -DRFA_TESTS=OFF -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_C_FLAGS_RELEASE="-O1 -Werror"
    cmake --build build/clang -j "$jobs"
}

# tests PRESET CTEST-OPTIONS...
tests()
{
    ctest --preset "$1" -j "$jobs" --output-log "$logs/ctest-$1.log" "${@:2}"
    if [ "${CI:-}" = true ] && grep -E 'Not Run|Skipped|\[  SKIPPED \]' "$logs/ctest-$1.log" \
        "build/$1/Testing/Temporary/LastTest.log"; then
        echo "a skipped test is a failure in CI"
        return 1
    fi
}

# How many tests passed, as ctest says it, and which were skipped.
total()
{
    sed -n 's/^\(.*tests passed, .*\)$/  \1/p; s/.*Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped.*/  skipped: \1/p' \
        "$logs/ctest-$1.log"
}

if [ -n "$regex" ]; then
    check "build-test" build test
    ctest --preset test -j "$jobs" -R "$regex"
    exit
fi

check "scripts parse" scripts_parse
check "rooms" bash tests/check_rooms.sh
check "format by clang-format" format
check "cppcheck" run_cppcheck
check "build-test by gcc -Werror" build test
check "tidy by clang-tidy" tidy
check "build-clang by clang -Werror" build_clang
check "tests-test" tests test
total test
check "build-sanitize" build sanitize
# One precision is enough to find wrong accesses; some tests have double alone.
check "tests-sanitize of units" tests sanitize -L unit -R '[.]f32[.]|exchange[.]|gradients'
total sanitize
echo "all good in $SECONDS s"
