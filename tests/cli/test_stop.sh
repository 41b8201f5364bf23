# Asked to stop: by a signal to one rank or the launcher, by the time limit, by a rank that has drifted. All
# ranks end after the same step with exit code 85 and a checkpoint; the run goes on to the same digest.
. "$SOURCE/tests/cli/lib.sh"
fresh
run 1 data listops --out data.h5 --train 60 --val 20 --test 21
expect_code 0
config=(train "$SOURCE/configs/lra/listops/rfa.yaml" --set data.file=data.h5 --set train.warmup=10
    --set train.batch=4 --set train.steps=240 --set train.evaluate_every=120
    --set train.checkpoint_every=0)
run 2 "${config[@]}" --out whole.h5
expect_code 0
final=$(value digest)

# expect_stopped NAME: the last run was stopped in good order.
expect_stopped()
{
    expect_code 85
    grep -q "rfa: stopped by .* after step [0-9]*; --resume goes on" "$err" || fail "no word about the stop"
    [ "$(python -c 'import h5py, sys; print(h5py.File(sys.argv[1]).attrs["state"])' "$1")" = stopped ] || fail "state"
}

# go_on NAME: to the end, on another number of ranks.
go_on()
{
    run 3 "${config[@]}" --out "$1" --resume
    expect_code 0
    [ "$(value digest)" = "$final" ] || fail "another digest after the stop"
}

# signal_run NAME SIGNAL WHOM: a run that gets a signal after its third step.
signal_run()
{
    local name=$1 signal=$2 whom=$3 target
    command_line="rfa ${config[*]}, $signal to $whom"
    "$MPIRUN" -q --mca odls_base_sigkill_timeout 2 -n 2 --oversubscribe "$RFA" "${config[@]}" \
        --out "$name" >"$out" 2>"$err" </dev/null &
    local launcher=$!
    for _ in $(seq 600); do
        grep -q '"step": *3\b' "${name%.h5}.jsonl" 2>/dev/null && break
        sleep 0.05
    done
    case $whom in
    launcher) target=$launcher ;;
    first) target=$(pgrep -P "$launcher" -f -- "--out $name" | head -n 1) ;;
    last) target=$(pgrep -P "$launcher" -f -- "--out $name" | tail -n 1) ;;
    esac
    kill -"$signal" "$target"
    code=0
    wait "$launcher" || code=$?
}

for signal in USR1 USR2 TERM INT; do
    for whom in first last launcher; do
        signal_run $signal.$whom.h5 $signal $whom
        if [ $whom = launcher ] && [[ $signal == TERM || $signal == INT ]]; then
            [ "$code" != 0 ] || fail "exit code 0 after SIG$signal" # mpirun reports its own signal
            code=85
        fi
        expect_stopped $signal.$whom.h5
    done
done
for name in USR1.launcher USR2.first TERM.last INT.launcher; do
    go_on $name.h5
done

# The time limit: the job's own, and the configuration's.
RFA_END_TIME=$(($(date +%s) + 4)) run 2 "${config[@]}" --set train.steps=100000 --out f.h5
expect_stopped f.h5
run 2 "${config[@]}" --set train.steps=100000 --out g.h5 --set train.max_minutes=0.03
expect_stopped g.h5

# A rank whose parameters have changed by themselves.
RFA_FAULT=train.drift@2 run 3 "${config[@]}" --out h.h5 --set train.check_every=5
expect_code 85
grep -q 'the parameters of rank 2 are not those of the others' "$err" || fail "the rank is not named"
