#!/usr/bin/env bash
# Two hosts, as network namespaces, and the link between them is cut in the middle of a run. With
# keep-alive the job ends in seconds rather than never, on both hosts; nothing is half-written; --resume on
# one host ends with the digest and rows of a run without a cut.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "ip is missing (Debian: iproute2)"
fresh
tiny_data
tiny 60 4 2
run 2 train quick.yaml --out whole.h5
keep_whole

# Hosts rfa-<pid>-1 and -2 at 10.77.0.1 and .2, each on a port of a bridge in rfa-<pid>-0.
net=rfa-$$
remove_hosts()
{
    local i pids
    for i in 1 2 0; do
        while pids=$(ip netns pids $net-$i 2>/dev/null) && [ -n "$pids" ]; do
            kill -9 $pids 2>/dev/null || true
            sleep 0.05
        done
        ip netns del $net-$i 2>/dev/null || true
    done
}
at_exit+=(remove_hosts)
for i in 0 1 2; do
    ip netns add $net-$i || skip "needs the right to make network namespaces"
    ip -n $net-$i link set lo up
done
ip -n $net-0 link add bridge type bridge
ip -n $net-0 link set bridge up
for i in 1 2; do
    ip link add port$i netns $net-0 type veth peer name eth0 netns $net-$i
    ip -n $net-0 link set port$i master bridge up
    ip -n $net-$i addr add 10.77.0.$i/24 dev eth0
    ip -n $net-$i link set eth0 up
done
link() # up|cut: as behind a switch, where neither end sees its carrier go
{
    if [ "$1" = cut ]; then
        ip -n $net-0 link set port2 nomaster
    else
        ip -n $net-0 link set port2 master bridge
    fi
}

# mpirun reaches a host by this instead of ssh: agent ADDRESS COMMAND...
cat >agent <<AGENT
#!/bin/sh
host=\${1##*.}
shift
exec ip netns exec $net-\$host unshare --uts sh -c "hostname node\$host; \$*"
AGENT
chmod +x agent

# two_hosts ARGS...: start, one rank a host, with keep-alive after 2 s and 3 probes.
two_hosts()
{
    command_line="rfa $* (2 hosts)"
    setsid "$PWD/agent" .1 exec "$MPIRUN" -q --host 10.77.0.1:1,10.77.0.2:1 -n 2 \
        --mca plm rsh --mca plm_rsh_agent "$PWD/agent" --mca plm_rsh_no_tree_spawn 1 \
        --mca btl self,tcp --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
        --mca oob_tcp_keepalive_time 2 --mca oob_tcp_keepalive_intvl 1 --mca oob_tcp_keepalive_probes 3 \
        "$RFA" "$@" >job.out 2>job.err </dev/null &
    job=$!
}

# Without a cut: two hosts are two ranks.
two_hosts train quick.yaml --out part.h5
wait_job
expect_whole part
"$PYTHON" -c 'import h5py
hosts = str(h5py.File("part.h5").attrs["hosts"])
assert "node1" in hosts and "node2" in hosts, hosts' || fail "not on two hosts"

for moment in first.ckpt.prev second.ckpt; do
    name=${moment%%.*}
    two_hosts train quick.yaml --out $name.h5
    wait_for [ -e $moment ]
    link cut
    cut=$SECONDS
    RUN_SECONDS=30 wait_job
    seconds=$((SECONDS - cut))
    [ "$code" != 0 ] || fail "the run went on without its link"
    # Keep-alive: 2 s, and 3 probes a second apart; then mpirun gives its ranks time to end.
    [ $seconds -le 15 ] || fail "ended after $seconds s, 5 s and a few are promised"
    echo "cut at $moment: ended after $seconds s with code $code"
    for ((i = 0; i < 100; i++)); do # the far side ends by its own keep-alive
        left=$(ip netns pids $net-1; ip netns pids $net-2)
        [ -n "$left" ] || break
        sleep 0.1
    done
    [ -z "$left" ] || fail "processes are left on the hosts: $(ps -o pid,args -p $left)"
    link up
    loads $name.h5 $name.ckpt $name.ckpt.prev
    run 2 train quick.yaml --out $name.h5 --resume
    expect_whole $name
done
