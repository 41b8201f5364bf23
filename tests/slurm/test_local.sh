# The job scripts without SLURM: what a sweep file stands for and what is refused in it; a run that
# stops at its own limit and goes on; Ctrl-C; runs that have ended; codes; launchers; binding.
. "$SOURCE/tests/cli/lib.sh"
fresh
jobs=$SOURCE/jobs
export RFA RFA_RANKS=2 RFA_NO_INSTALL=1 RFA_PYTHON=$PYTHON
settings=("$SOURCE/configs/lra/listops/quickstart.yaml" --set data.file=d.h5 --set data.max_length=128
    --set train.batch=4 --set train.warmup=10 --set train.steps=100 --set train.evaluate_every=50
    --set train.evaluate_examples=0 --set train.checkpoint_every=20)

# call SCRIPT ARGS...: of jobs/, as run does it for the program.
call()
{
    command_line="jobs/$*"
    code=0
    timeout -k 5 300 bash "$jobs/$1" "${@:2}" >"$out" 2>"$err" </dev/null || code=$?
}

expect_err()
{
    grep -qE -- "$1" "$err" || fail "no line of stderr matches: $1"
}

# Sweep files.
cat >a.sweep <<'SWEEP'
# comment

train.seed=1,2 attention.kind=softmax,rfa  # four
data.file=x/y.h5 train.rate=1e-3
SWEEP
call sweep.sh list c/base.yaml a.sweep
expect_code 2
expect_err "can't read c/base.yaml"
mkdir c
: >c/base.yaml
call sweep.sh list c/base.yaml a.sweep
expect_code 0
diff - "$out" <<'LIST' || fail "another list"
runs/base-a/attention.kind=softmax,train.seed=1.h5	attention.kind=softmax train.seed=1
runs/base-a/attention.kind=softmax,train.seed=2.h5	attention.kind=softmax train.seed=2
runs/base-a/attention.kind=rfa,train.seed=1.h5	attention.kind=rfa train.seed=1
runs/base-a/attention.kind=rfa,train.seed=2.h5	attention.kind=rfa train.seed=2
runs/base-a/data.file=x_y.h5,train.rate=1e-3.h5	data.file=x/y.h5 train.rate=1e-3
LIST
for bad in 'seed=1' 'train.seed' 'train.seed=' 'train.seed=1,' 'train.seed=,1' 'train.seed=1 train.seed=2' \
    'train.seed=1,1' $'train.seed=1\ntrain.seed=1' '# nothing'; do
    echo "$bad" >bad.sweep
    call sweep.sh list c/base.yaml bad.sweep
    expect_code 2
    expect_err '^sweep: bad.sweep'
done

# The run that nobody disturbs, and one that stops again and again. --overwrite is for its first
# start only; a third call does nothing.
run 1 data listops --out d.h5 --train 40 --val 10 --test 10
expect_code 0
short=("${settings[@]}" --set train.steps=40) # a busy machine stops after each step
run 2 train "${short[@]}" --out short.h5
expect_code 0
digest=$(value digest)
RFA_MAX_RESTARTS=200 call local.sh train "${short[@]}" --out piece.h5 --overwrite \
    --set train.max_minutes=0.035 # of these 2.1 s it keeps 2 for the end
expect_code 0
[ "$(value digest)" = "$digest" ] || fail "another digest"
expect_err '^resuming piece.h5'
call local.sh train "${short[@]}" --out piece.h5
expect_code 0
expect_err '^job: piece.h5 is finished'
[ ! -s "$out" ] || fail "trained again"
RFA_MAX_RESTARTS=0 call local.sh train "${short[@]}" --out piece.h5 --overwrite --set train.max_minutes=0.01
expect_code 85

run 2 train "${settings[@]}" --out whole.h5
expect_code 0
digest=$(value digest)

# Ctrl-C: one checkpoint, 85 and no restart, soon; then on to the end.
bash "$jobs/local.sh" train "${settings[@]}" --out stopped.h5 >"$out" 2>"$err" </dev/null &
job=$!
for _ in $(seq 1200); do
    [ -s stopped.jsonl ] && break
    sleep 0.1
done
kill -TERM $job # bash ignores SIGINT in background jobs; both are handled alike
start=$SECONDS
code=0
wait $job || code=$?
command_line="local.sh train, stopped"
expect_code 85
[ $((SECONDS - start)) -lt 30 ] || fail "it took $((SECONDS - start)) s to stop"
expect_err '^job: SIGTERM: asking the ranks to stop'
[ "$("$RFA" inspect stopped.h5 | sed -n '1s/ after.*//p')" = "stopped.h5: run, stopped" ] || fail "not stopped"
call local.sh train "${settings[@]}" --out stopped.h5
expect_code 0
expect_err '^resuming stopped.h5'
[ "$(value digest)" = "$digest" ] || fail "another digest after a stop"

# Codes; a run that has diverged is not tried again.
call local.sh train "${settings[@]}" --set train.stepz=1 --out none.h5
expect_code 2
RFA_FAULT=train.nan call local.sh train "${settings[@]}" --out nan.h5
expect_code 5
call local.sh train "${settings[@]}" --out nan.h5
expect_code 5
expect_err '^job: nan.h5 has diverged'

# A sweep with a line that can't work: the others run, and the report names all.
cat >c/base.yaml <<'YAML'
data:
  file: d.h5
  max_length: 64
train:
  batch: 2
  steps: 4
  warmup: 2
YAML
printf 'model.heads=3\ntrain.seed=1,2\n' >b.sweep
call local.sh sweep c/base.yaml b.sweep
expect_code 2
expect_out '^2 of 3 finished$'
expect_out '^best by validation: train.seed=[12]$'
expect_out '^  validation 0\.[0-9]+ \+- 0\.[0-9]+, test 0\.[0-9]+ \+- 0\.[0-9]+  \(2 runs\)  all else equal$'
expect_out '^failed: not started, exit code 2 in job [0-9]+, .*: model.heads=3$'

# The container and the Spack environment have what the build needs.
while IFS='|' read -r set piece debian spack _; do
    if [ "$set" = build ]; then
        for package in $debian; do
            grep -qE "(^| )$package( |\$)" "$jobs/rfa.def" || fail "rfa.def lacks $package"
        done
        spack=${spack%%[@+~ ]*}
        [[ $piece == cc || $piece == make ]] || grep -qE "^    - $spack([@+~ ]|\$)" "$jobs/spack.yaml" ||
            fail "spack.yaml lacks $spack"
    fi
done <"$jobs/setup.sh"

# Exact attention beside its estimates, on both ranks.
call local.sh fidelity --set fidelity.length=32 --set fidelity.width=8 --set fidelity.trials=1 \
    --set fidelity.features=8 --set fidelity.ceiling=64 --out fidelity.h5
expect_code 0
expect_err '^2 ranks'
[ -s fidelity.h5 ] || fail "no results"
call local.sh fidelity --set fidelity.lenght=32
expect_code 2

# Nothing that could start ranks; ranks with fewer CPUs than threads.
code=0
(job_local=yes && . "$jobs/lib.sh" && PATH=/nonexistent && job_find_launcher) 2>"$err" || code=$?
expect_code 2
expect_err 'nothing can start the ranks'
OMP_NUM_THREADS=2 taskset -c 0 bash "$jobs/rank.sh" '' true 2>"$err"
expect_err 'WARNING: rank 0 on .* has 2 threads but 1 CPU \(0\)'
OMP_NUM_THREADS=1 taskset -c 0 bash "$jobs/rank.sh" '' true 2>"$err"
[ "$(grep -c WARNING "$err")" = 0 ] || fail "a warning for nothing"
