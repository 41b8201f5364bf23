#!/usr/bin/env bash
# Finds what rfa needs, installs what is missing where it may, and sets the environment of a run.
#
#   bash jobs/setup.sh [build|tests]     check, install
#   . jobs/setup.sh [build|tests]        the same, and keep the environment in this shell
#
# build: to compile and run (default). tests: also what tests/run.sh uses.
# Installs with apt-get as root or by passwordless sudo; elsewhere it lists what is missing, with
# the names in Debian, Spack and environment modules, and returns 2. RFA_NO_INSTALL=1: only list.
# Pieces of the set "some" belong to single tests, which are skipped without: no reason to stop.
# Exports RFA_PYTHON (a Python with h5py and numpy) when there is one.

# set | name | Debian packages | Spack spec | usual module
setup_pieces='
build|cc|gcc libc6-dev|gcc|gcc
build|make|make|gmake|make
build|cmake-3.25|cmake|cmake@3.25:|cmake
build|pkg-config|pkg-config|pkgconf|pkgconf
build|mpicc|libopenmpi-dev|openmpi|openmpi
build|mpirun|openmpi-bin|openmpi|openmpi
build|parallel-hdf5|libhdf5-openmpi-dev|hdf5+mpi ^openmpi|hdf5/parallel
build|openblas|libopenblas-pthread-dev|openblas threads=pthreads|openblas
build|scalapack|libscalapack-openmpi-dev|netlib-scalapack ^openmpi|scalapack
build|yaml-0.1|libyaml-dev|libyaml|libyaml
build|zlib|zlib1g-dev|zlib|zlib
build|libpng|libpng-dev|libpng|libpng
tests|cmocka|libcmocka-dev|cmocka|cmocka
tests|python-h5py-numpy|python3 python3-h5py python3-numpy|py-h5py py-numpy|python
tests|python-analysis|python3-pandas python3-matplotlib python3-pytest|py-pandas py-matplotlib py-pytest|python
tests|h5dump|hdf5-tools|hdf5+mpi ^openmpi|hdf5/parallel
tests|clang-openmp|clang libomp-dev|llvm+clang|llvm
tests|clang-format|clang-format|llvm+clang|llvm
tests|clang-tidy|clang-tidy|llvm+clang|llvm
tests|cppcheck|cppcheck|cppcheck|cppcheck
tests|ps|procps|procps|procps
tests|groff|groff-base|groff|groff
some|libfuzzer|clang libclang-rt-14-dev|llvm+clang compiler-rt=runtime|llvm
some|slurm|slurmctld slurmd munge|slurm munge|slurm
some|ip|iproute2|iproute2|iproute2
some|chromium|chromium fonts-liberation|-|-
some|fashion-mnist|dataset-fashion-mnist|-|-
'

# setup_find_python [MODULES]: a Python that has them
setup_find_python()
{
    local python
    for python in "${RFA_PYTHON:-}" /usr/bin/python3 python3 "$setup_top/build/python/bin/python"; do
        if [ -n "$python" ] && "$python" -c "import ${1:-h5py, numpy}" 2>/dev/null; then
            RFA_PYTHON=$(command -v "$python")
            export RFA_PYTHON
            return 0
        fi
    done
    return 1
}

# setup_has PIECE: is it there and new enough?
setup_has()
{
    local version header
    case $1 in
    cmake-3.25)
        version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version \([0-9.]*\).*/\1/p')
        [ -n "$version" ] && [ "$(printf '%s\n' 3.25 "$version" | sort -V | head -n 1)" = 3.25 ]
        ;;
    make) command -v make >/dev/null || [ -n "${CMAKE_GENERATOR:-}" ] ;;
    cc) command -v cc >/dev/null && [ -e "$(cc -print-file-name=crt1.o)" ] ;;
    parallel-hdf5)
        pkg-config --exists hdf5-openmpi 2>/dev/null || command -v h5pcc >/dev/null || {
            header=$(pkg-config --variable=includedir hdf5 2>/dev/null)/H5pubconf.h
            grep -qs '^#define H5_HAVE_PARALLEL 1' "$header"
        }
        ;;
    scalapack) pkg-config --exists scalapack-openmpi || pkg-config --exists scalapack ;;
    openblas | yaml-0.1 | zlib | libpng | cmocka) pkg-config --exists "$1" 2>/dev/null ;;
    python-h5py-numpy) setup_find_python ;;
    python-analysis) setup_find_python 'h5py, numpy, pandas, matplotlib, pytest' ;;
    clang-openmp)
        command -v clang >/dev/null &&
            echo '#include <omp.h>' | clang -fopenmp -x c -fsyntax-only - 2>/dev/null
        ;;
    libfuzzer)
        command -v clang >/dev/null &&
            [ -e "$(clang -print-file-name="libclang_rt.fuzzer-$(uname -m).a")" ]
        ;;
    slurm | ip) # daemons and root's tools: not in everybody's PATH
        (
            PATH=$PATH:/usr/sbin:/sbin
            if [ "$1" = ip ]; then
                command -v ip
            else
                command -v munged && command -v slurmctld && command -v slurmd && command -v sbatch
            fi
        ) >/dev/null
        ;;
    fashion-mnist) [ -d /usr/share/datasets/fashion-mnist ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# Prints the rows of setup_pieces of the given sets that are missing.
setup_missing()
{
    local set name rest
    while IFS='|' read -r set name rest; do
        if [ -n "$set" ] && [[ " $* " == *" $set "* ]]; then
            setup_has "$name" || printf '%s|%s\n' "$name" "$rest"
        fi
    done <<<"$setup_pieces"
}

# Installs Debian packages; its log is shown only when both tries fail. Daemons that come with them are
# not started: Debian's policy-rc.d forbids it meanwhile.
setup_install()
{
    local log sudo='' try
    [ "$(id -u)" = 0 ] || sudo='sudo -n'
    log=$(mktemp)
    echo "setup: installing $*" >&2
    for try in 1 2; do
        # shellcheck disable=SC2016
        if $sudo env DEBIAN_FRONTEND=noninteractive bash -c '
            policy=/usr/sbin/policy-rc.d
            if [ ! -e "$policy" ]; then
                trap "rm -f $policy" EXIT
                printf "#!/bin/sh\nexit 101\n" >"$policy"
                chmod 755 "$policy"
            fi
            apt-get -q update && apt-get -q -y install --no-install-recommends "$@"
            ' setup "$@" >"$log" 2>&1 </dev/null; then
            rm -f "$log"
            return 0
        fi
        [ "$try" = 2 ] || sleep 5
    done
    tail -n 40 "$log" >&2
    echo "setup: apt-get failed twice; the whole log is $log" >&2
    return 1
}

setup_may_install()
{
    [ -z "${RFA_NO_INSTALL:-}" ] && command -v apt-get >/dev/null &&
        { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }
}

# Without root, Python's packages can still come by pip into build/python.
setup_virtual_environment()
{
    [ -z "${RFA_NO_INSTALL:-}" ] && command -v python3 >/dev/null &&
        echo "setup: making build/python with the packages of Python" >&2 &&
        python3 -m venv "$setup_top/build/python" >/dev/null 2>&1 &&
        "$setup_top/build/python/bin/pip" install -q h5py numpy pandas matplotlib pytest \
            >/dev/null 2>&1 &&
        setup_find_python
}

# setup_list HEADING ROWS
setup_list()
{
    {
        echo "setup: $1"
        echo
        printf '  %-18s  %-38s  %-26s  %s\n' piece 'Debian packages' 'Spack spec' module
        while IFS='|' read -r name debian spack module; do
            printf '  %-18s  %-38s  %-26s  %s\n' "$name" "$debian" "$spack" "$module"
        done <<<"$2"
        echo
        echo 'Install the packages, or load them (module load ..., spack load ...), and run this again.'
    } >&2
}

# Only what the user has not set.
setup_environment()
{
    if [ "$(id -u)" = 0 ]; then
        export OMPI_ALLOW_RUN_AS_ROOT="${OMPI_ALLOW_RUN_AS_ROOT:-1}"
        export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="${OMPI_ALLOW_RUN_AS_ROOT_CONFIRM:-1}"
    fi
    # More ranks than cores work, and a waiting rank leaves its core to the others.
    export OMPI_MCA_rmaps_base_oversubscribe="${OMPI_MCA_rmaps_base_oversubscribe:-1}"
    export OMPI_MCA_mpi_yield_when_idle="${OMPI_MCA_mpi_yield_when_idle:-1}"
    export OMPI_MCA_hwloc_base_binding_policy="${OMPI_MCA_hwloc_base_binding_policy:-none}"
    export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    export OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
}

setup()
{
    local wanted=${1:-build} missing sets
    case $wanted in
    build) sets=(build) ;;
    tests) sets=(build tests) ;;
    *)
        echo "setup: '$wanted' is not build or tests" >&2
        return 2
        ;;
    esac
    missing=$(setup_missing "${sets[@]}")
    if [ -n "$missing" ] && setup_may_install; then
        # Unquoted: one word a package.
        setup_install $(cut -d '|' -f 2 <<<"$missing") || return 2
        hash -r
        missing=$(setup_missing "${sets[@]}")
    fi
    if [[ $missing == python-* || $missing == *$'\n'python-* ]] && setup_virtual_environment; then
        missing=$(setup_missing "${sets[@]}")
    fi
    if [ -n "$missing" ]; then
        setup_list 'missing here:' "$missing"
        return 2
    fi
    if [ "$wanted" = tests ]; then
        missing=$(setup_missing some)
        if [ -n "$missing" ] && setup_may_install; then
            setup_install $(cut -d '|' -f 2 <<<"$missing") || true
            hash -r
            missing=$(setup_missing some)
        fi
        [ -z "$missing" ] || setup_list 'missing here, and the tests that need it are skipped:' "$missing"
    fi
    setup_find_python || true
    setup_environment
}

setup_top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    setup "$@" || exit
    echo "setup: everything is here"
else
    setup "$@"
fi
