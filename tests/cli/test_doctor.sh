#!/usr/bin/env bash
# rfa doctor: one line a check on any number of ranks; what is wrong is a FAIL line, exit code 1 and
# one error line, and never a hang.
. "$SOURCE/tests/cli/lib.sh"
fresh
trap 'umount "$SCRATCH/here/full" 2>/dev/null || true' EXIT

# expect_check WORD NAME [REGEX]: exactly one line of this check, of this kind.
expect_check()
{
    [ "$(grep -cE "^(ok|warn|FAIL) +$2 " "$out")" = 1 ] || fail "not exactly one line of $2"
    expect_out "^$1 +$2 .*${3:-}"
}

# expect_count FAILED [CHECKS]: the last line counts what the lines say.
expect_count()
{
    local all
    all=$(grep -cE '^(ok|warn|FAIL) ' "$out")
    expect_out "^$all checks: $(grep -c '^ok ' "$out") ok, [0-9]+ warn, $1 FAIL\$"
    [ "$(grep -c '^FAIL ' "$out" || true)" = "$1" ] || fail "not $1 FAIL lines"
    [ "$all" = "${2:-$all}" ] || fail "$all checks, expected $2"
}

mkdir empty
for ranks in 0 1 2 3; do
    run "$ranks" doctor empty
    expect_code 0
    expect_count 0 18
    for name in program launcher hosts threads cores limits settings mpi hdf5 blas gemm exchange \
        folder space parallel alone locks rename; do
        expect_check '(ok|warn)' $name
    done
    count=$((ranks > 0 ? ranks : 1))
    expect_check ok hosts "$count ranks? on 1 host: .* $count\$"
    expect_check ok parallel "$((count * 65536)) bytes written .* read back"
    expect_check ok gemm 'products are right; sgemm [0-9]'
    expect_check ok threads 'OpenMP 1 a rank'
    [ ! -s "$err" ] || fail "something on stderr"
    [ -z "$(ls -A empty)" ] || fail "something is left in the folder: $(ls -A empty)"
done
expect_check ok launcher 'mpirun, 3 ranks'
expect_check ok exchange 'exscan .* all-to-all; auto takes all-to-all for prefix .*MPI_Exscan adds'
expect_check ok locks 'on another rank too'
run 2 doctor empty
expect_check ok exchange 'auto takes exscan for prefix and suffix, all-to-all for totals.* left to right'
run 0 doctor empty
expect_check ok launcher 'started directly, 1 rank'

# The default folder: runs when it is there.
run 1 doctor
expect_check ok folder '\., '
mkdir runs
run 1 doctor
expect_check ok folder 'runs, '

# Cores: two ranks on one, a rank with more threads than cores.
first=$(taskset -pc $$ | sed 's/.*: //; s/[-,].*//')
whole=$RFA
printf '#!/bin/sh\nexec taskset -c %s "%s" "$@"\n' "$first" "$whole" >bound.sh
chmod +x bound.sh
RFA=$PWD/bound.sh
run 2 doctor empty
expect_code 0
expect_check warn cores "each rank may use $first: 2 ranks with 2 threads share 1 core"
OMP_NUM_THREADS=2 run 1 doctor empty
expect_check warn cores '1 rank with 2 threads shares 1 core'
expect_check ok threads 'OpenMP 2 a rank'
run 1 doctor empty
expect_check ok cores "it may use $first\$"
RFA=$whole

# BLAS kernels that are below the processor.
OPENBLAS_CORETYPE=Nehalem run 2 doctor empty
expect_code 0
expect_check warn blas 'Nehalem.*OPENBLAS_CORETYPE=Nehalem: the kernel is not the best'
expect_check ok gemm
word=ok
if grep -qw avx512f /proc/cpuinfo && grep -qw avx512vl /proc/cpuinfo; then
    word=warn
fi
OPENBLAS_CORETYPE=Haswell run 1 doctor empty
expect_code 0
expect_check $word blas Haswell
if [ "$word" = warn ]; then
    OPENBLAS_CORETYPE=SkylakeX run 1 doctor empty
    expect_check ok blas SkylakeX
fi
# Different kernels on different ranks: other bits.
cat >mixed.sh <<EOF
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" = 0 ] || export OPENBLAS_CORETYPE=Nehalem
exec "$whole" "\$@"
EOF
chmod +x mixed.sh
RFA=$PWD/mixed.sh
run 2 doctor empty
RFA=$whole
expect_code 1
expect_line 'doctor: 1 of 18 checks failed: blas$'
expect_check FAIL blas 'different libraries or kernels'

# Settings, limits, the end of the job.
OMPI_MCA_coll_tuned_use_dynamic_rules=0 OMP_DYNAMIC=true run 1 doctor empty
expect_code 0
expect_check warn settings 'coll_tuned_use_dynamic_rules=0 .*OMP_DYNAMIC=true'
# Whatever reductions and transports are forced: the exchange gives the same bits, and it is told.
hostile() # NAME=VALUE...: of Open MPI
{
    (
        export "${@/#/OMPI_MCA_}"
        run 4 doctor empty
        expect_code 0
        expect_check warn settings "${1%%=*}=.*"
        expect_check ok exchange 'are those of the serial tree, by exscan and by all-to-all'
    )
}
for algorithm in 1 2 3 4 6; do
    hostile coll_tuned_use_dynamic_rules=1 coll_tuned_allreduce_algorithm=$algorithm \
        coll_tuned_exscan_algorithm=$((algorithm % 2 + 1)) coll_tuned_alltoallv_algorithm=$((algorithm % 2 + 1))
done
hostile coll=^tuned
hostile btl=self,tcp
RFA_END_TIME=$(($(date +%s) + 7265)) run 1 doctor empty
expect_check ok launcher 'RFA_END_TIME: 2:0[01]:'
RFA_END_TIME=1000 run 1 doctor empty
expect_check warn launcher 'over already'
(
    ulimit -f 100000
    run 1 doctor empty
    expect_code 0
    expect_check warn limits 'size of a file limited'
)

# Folders that don't do.
run 2 doctor missing
expect_code 1
expect_line 'doctor: 1 of 13 checks failed: folder$'
expect_check FAIL folder 'missing: No such file'
expect_count 1 13
: >file
run 1 doctor file
expect_code 1
expect_check FAIL folder 'not a folder'
run 2 doctor /proc
expect_code 1
expect_check FAIL folder 'nothing can be created'
mkdir full
if mount -t tmpfs -o size=64k tmpfs full 2>/dev/null; then
    head -c 60000 /dev/zero >full/taken
    run 3 doctor full
    expect_code 1
    expect_line 'folder$'
    expect_check FAIL folder 'No space left'
    [ "$(ls -A full)" = taken ] || fail "something is left in the full folder"
    umount full
elif [ "${CI:-}" = true ]; then
    fail "the full disk can't be tested: no right to mount a tmpfs"
else
    echo "not tested for lack of rights: a full disk"
fi
if [ "$(id -u)" != 0 ]; then
    chmod a-w empty
    run 1 doctor empty
    expect_code 1
    expect_check FAIL folder 'ermission denied'
    chmod u+w empty
fi

# Each check that can fail is told, with its rank, and the others go on.
for fault in gemm@1 exchange@1 parallel@2 rename@0; do
    name=${fault%@*}
    RFA_FAULT=doctor.$fault run 3 doctor empty
    expect_code 1
    expect_line "doctor: 1 of 1[78] checks failed: $name\$"
    expect_check FAIL "$name" "rank ${fault#*@}: injected fault"
    expect_count 1
    expect_check ok locks
done
RFA_FAULT=doctor.gemm@0 run 2 doctor missing
expect_line 'doctor: 2 of 13 checks failed: gemm, folder$'

# A rank that never answers: the clock ends all.
for rank in 0 1; do
    RFA_FAULT=doctor.hang@$rank RUN_SECONDS=60 run 2 doctor empty --seconds 5
    expect_code 1
    expect_line 'doctor: exchange did not end within 5 s'
    expect_check FAIL exchange 'no answer within 5 s'
done

run 1 doctor a b
expect_code 2
run 1 doctor --seconds 0
expect_code 2
expect_line '^rfa: error: --seconds'
run 1 doctor --help
expect_code 0
expect_out '^usage: rfa doctor'
