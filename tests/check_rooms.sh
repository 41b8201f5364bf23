#!/usr/bin/env bash
# Checks the rules of the rooms that a compiler can't see: who may include whom, who may call what.
#
#   tests/check_rooms.sh [TOP]     prints file:line: rule for each violation; exit 1 if there is one
#
# First it proves on a small tree with one violation of each kind that every rule can fail.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)

# Reads C files named src/<room>/...; strings and comments don't count.
rules=$(cat <<'AWK'
function violation(text) { printf "%s:%d: %s\n", FILENAME, FNR, text }
function allowed(rooms) { return index(" " rooms " ", " " room " ") > 0 }
function calls(names) { return code ~ "(^|[^A-Za-z0-9_])(" names ")[ \t]*\\(" }
function word(name) { return code ~ "(^|[^A-Za-z0-9_])" name "($|[^A-Za-z0-9_])" }
function place(rooms, at,   i, n, names) {
    n = split(rooms, names, " ")
    for (i = 1; i <= n; i++) level[names[i]] = at
}
BEGIN {
    place("base", 0); place("config rng tensor linalg", 1)
    place("features attention exchange storage", 2); place("layers tasks", 3)
    place("models", 4); place("optim", 5); place("train", 6); place("bench fidelity probe", 7); place("cli", 8)
    # Neighbours on the same level that may be included.
    beside["linalg tensor"] = beside["linalg rng"] = beside["rng tensor"] = 1
    beside["attention features"] = beside["storage exchange"] = 1
    mpi_rooms = "base exchange linalg storage train cli bench fidelity probe"
}
FNR == 1 { split(FILENAME, part, "/"); room = part[2]; in_comment = 0 }
FNR == 1 && !(room in level) { violation("no such room: src/" room) }
FNR == 451 { violation("more than 450 lines in a file") }
{
    code = $0
    include = ""
    if (match(code, /^[ \t]*#[ \t]*include[ \t]*["<][^">]*/)) {
        include = substr(code, RSTART, RLENGTH)
        sub(/^[^"<]*["<]/, "", include)
    }
    gsub(/\\./, "", code)
    gsub(/"[^"]*"/, "\"\"", code)
    if (in_comment) {
        if (!sub(/^.*\*\//, "", code)) next
        in_comment = 0
    }
    gsub(/\/\*[^*]*\*\//, "", code)
    sub(/\/\/.*$/, "", code)
    if (sub(/\/\*.*$/, "", code)) in_comment = 1
}
include == "mpi.h" && !allowed(mpi_rooms) { violation("mpi.h only in " mpi_rooms) }
include ~ /^hdf5/ && !allowed("storage") { violation("hdf5.h only in storage") }
include == "linalg/scalapack.h" && !allowed("linalg") {
    violation("BLACS and ScaLAPACK only in linalg")
}
include == "cblas.h" && !allowed("tensor linalg") { violation("cblas.h only in tensor, linalg") }
!allowed("linalg") && calls("Cblacs_[a-z_]+|Cfree_blacs_system_handle|Csys2blacs_handle|p[sd][a-z0-9]+_") {
    violation("BLACS and ScaLAPACK only in linalg")
}
include ~ /\// && include !~ /^sys\// {
    split(include, part, "/")
    to = part[1]
    if (!(to in level))
        violation("include of no room: " include)
    else if (to == "config" && !allowed("config train bench fidelity probe cli"))
        violation("only train, bench, fidelity, probe and cli see the configuration")
    else if (to != room && level[to] >= level[room] && !((room " " to) in beside))
        violation(room " must not include " to)
}
code ~ /(^|[^A-Za-z0-9_])MPI_[A-Z]/ && !allowed(mpi_rooms) { violation("MPI only in " mpi_rooms) }
word("MPI_COMM_WORLD") && FILENAME !~ /^src\/(cli\/main|base\/status)\.c$/ {
    violation("MPI_COMM_WORLD only in cli/main.c and base/status.c")
}
!allowed("base cli") && (calls("printf|vprintf|puts|putchar|perror|exit|_exit|_Exit|abort") ||
    code ~ /[^A-Za-z0-9_](stdout|stderr)([^A-Za-z0-9_]|$)/) {
    violation("printing and exit only in base and cli (rfa_note, rfa_warn, rfa_fail)")
}
!allowed("base") && calls("malloc|calloc|realloc|aligned_alloc|posix_memalign|free|strdup|strndup|asprintf") {
    violation("memory only by rfa_alloc and rfa_free")
}
AWK
)

# check_tree: the violations of the tree in the current folder, on stdout.
check_tree()
{
    find src -name '*.[ch]' | LC_ALL=C sort | xargs awk "$rules"
    find tests jobs analysis \( -name '*.[ch]' -o -name '*.sh' -o -name '*.py' \) 2>/dev/null |
        LC_ALL=C sort | xargs -r awk 'FNR == 451 { print FILENAME ":451: more than 450 lines in a file" }'
    # What git knows; in a tree without git, what is there beside the folders that runs make.
    { git ls-files 2>/dev/null | grep . || ls -A; } | cut -d / -f 1 | sort -u |
        { grep -vxE '\..*|src|jobs|configs|tests|analysis|build|data|runs|CMakeLists\.txt|CMakePresets\.json|README\.md|CONTRIBUTING\.md|LICENSE' || true; } |
        sed 's/.*/&:1: not a name of the top level/'
}

# Plants violations and near misses in a small tree, and wants exactly the violations found.
prove_rules()
{
    local tree expected got
    tree=$(mktemp -d)
    plant() # FILE LINE...
    {
        mkdir -p "$tree/$(dirname "$1")"
        printf '%s\n' "${@:2}" >"$tree/$1"
    }
    plant src/layers/mpi.c '#include <mpi.h>' 'int a = MPI_SUCCESS;'
    plant src/train/world.c 'MPI_Comm_dup(MPI_COMM_WORLD, &comm);'
    plant src/tasks/file.h '#include <hdf5.h>'
    plant src/attention/blas.c '#include <cblas.h>'
    plant src/models/talk.c '    printf("x");' 'if (bad) exit(1);' 'fprintf(stderr, "x");'
    plant src/exchange/heap.c 'x = malloc(4);' '(free)(x); free (x);' 'y = strdup(x);'
    plant src/exchange/up.c '#include "attention/linear.h"' '#include "features/map.h"'
    plant src/storage/up.c '#include "layers/linear.h"'
    plant src/base/up.c '#include "rng/rng.h"'
    plant src/train/beside.c '#include "bench/case.h"'
    plant src/bench/up.c '#include "cli/blas.h"' '#include "train/session.h"' '#include "config/config.h"'
    plant src/fidelity/grid.c '#include "linalg/scalapack.h"' 'Cblacs_gridexit(x); pdgemm_(a);' 'update_(y);'
    plant src/linalg/good.c '#include <cblas.h>' '#include "linalg/scalapack.h"' '#include "rng/rng.h"' 'pdgemm_(a);'
    plant src/layers/whole.c '#include "config/config.h"'
    plant src/cli/elsewhere.c '#include "../tests/support.h"'
    plant src/attic/room.c 'int a;'
    for i in $(seq 460); do echo "int a$i;"; done >"$tree/src/base/long.c"
    mkdir -p "$tree/tests" && cp "$tree/src/base/long.c" "$tree/tests/test_long.c"
    echo >"$tree/notes.txt"
    expected='notes.txt:1 src/attention/blas.c:1 src/attic/room.c:1 src/base/long.c:451 src/base/up.c:1 src/bench/up.c:1
src/cli/elsewhere.c:1 src/exchange/heap.c:1 src/exchange/heap.c:2 src/exchange/heap.c:3
src/exchange/up.c:1 src/exchange/up.c:2 src/fidelity/grid.c:1 src/fidelity/grid.c:2
src/layers/mpi.c:1 src/layers/mpi.c:2 src/layers/whole.c:1
src/models/talk.c:1 src/models/talk.c:2 src/models/talk.c:3 src/storage/up.c:1 src/tasks/file.h:1
src/train/beside.c:1 src/train/world.c:1 tests/test_long.c:451'
    # What must not be taken for a violation.
    plant src/cli/good.c '#include "config/config.h"' 'printf("x"); exit(1);'
    plant src/storage/good.c '#include "exchange/partition.h"' '#include <sys/stat.h>' \
        'rfa_free(x); fprintf(file, "x"); snprintf(b, n, "free(x) %s", s); // malloc(4)' \
        '/* exit(1) and' 'printf(1) */ mem_free(x);'
    plant src/models/good.c 'void f(const char *a) __attribute__((format(printf, 1, 2)));' \
        'rfa_printf(x); x.exit_code = 0; const char *s = "MPI_COMM_WORLD \" exit(1)";'
    got=$(cd "$tree" && GIT_DIR=/dev/null check_tree | cut -d : -f 1,2 | LC_ALL=C sort -u)
    rm -rf "$tree"
    expected=$(tr ' ' '\n' <<<"$expected" | LC_ALL=C sort -u)
    if [ "$got" != "$expected" ]; then
        echo "check_rooms.sh: its own rules are broken (< expected, > found):"
        diff <(echo "$expected") <(echo "$got") || true
        exit 1
    fi
}

prove_rules
cd "${1:-$here/..}"
found=$(check_tree)
if [ -n "$found" ]; then
    printf '%s\n' "$found"
    exit 1
fi
echo "rooms: $(find src -name '*.[ch]' | wc -l) files, no violation"
