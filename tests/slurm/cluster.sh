#!/usr/bin/env bash
# A SLURM cluster on this one machine, to try the job scripts: munged, slurmctld and one slurmd a
# node, on loopback, with own key, ports and folders. Each node has its own host name (a UTS
# namespace): with equal ones Open MPI takes the nodes for one and mixes up their shared memory. And
# it has a disk of its own, FOLDER/local.
#
#   bash tests/slurm/cluster.sh up FOLDER NODES CPUS    then: . FOLDER/env.sh
#   bash tests/slurm/cluster.sh down FOLDER             ends everything that up started
#
# FOLDER is new, and at most 60 characters long (sockets are in it). Needs root, Linux, and the
# Debian packages slurmctld, slurmd and munge; up returns 77 when something of this is missing.
set -euo pipefail

die()
{
    echo "cluster: $1" >&2
    exit "${2:-1}"
}

# wait_for TENTHS COMMAND...: until it succeeds.
wait_for()
{
    local left=$1
    shift
    while ! "$@"; do
        [ $((left--)) -gt 0 ] || return 1
        sleep 0.1
    done
}

# running PID: is it there, and not a zombie that nobody waits for?
running()
{
    [ -n "$1" ] && grep -q '^State:[[:space:]]*[^ZX]' "/proc/$1/status" 2>/dev/null
}

ended()
{
    ! running "$1"
}

# stop FILE: ends the daemon of a pid file.
stop()
{
    local pid
    pid=$(cat "$1" 2>/dev/null) || return 0
    running "$pid" || return 0
    kill "$pid" 2>/dev/null || true
    wait_for 50 ended "$pid" || kill -9 "$pid" 2>/dev/null || true
}

is_free()
{
    ! { : <>"/dev/tcp/127.0.0.1/$1"; } 2>/dev/null
}

# A port with enough free ones after it, below those that the kernel hands out.
free_ports()
{
    local base port
    for _ in $(seq 50); do
        base=$((16000 + RANDOM % 300 * 50))
        for port in $(seq "$base" $((base + nodes + 1))); do
            is_free "$port" || continue 2
        done
        echo "$base"
        return
    done
    die "no free ports"
}

write_configuration()
{
    local port i
    port=$(free_ports)
    # cred_expire (5 is the least) is also the time before a requeued job may start again (or 120 s).
    # TmpFS: a folder per node, as the steps of all nodes make folders of the same name there.
    # No cgroups: works in containers too. config_overrides: more CPUs than there are.
    cat >"$folder/slurm.conf" <<CONF
ClusterName=rfa
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge,cred_expire=5
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/slurmd.%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
MpiDefault=none
ReturnToService=2
KillWait=5
MinJobAge=600
MailProg=/bin/true
CONF
    for i in $(seq "$nodes"); do
        echo "NodeName=node$i NodeHostname=node$i NodeAddr=127.0.0.1 Port=$((port + i)) CPUs=$cpus" \
            "SocketsPerBoard=1 CoresPerSocket=$cpus ThreadsPerCore=1 RealMemory=2000"
    done >>"$folder/slurm.conf"
    echo "PartitionName=main Nodes=node[1-$nodes] Default=YES DefMemPerCPU=1" >>"$folder/slurm.conf"
    cat >"$folder/env.sh" <<ENV
export SLURM_CONF=$folder/slurm.conf
export OMPI_MCA_oob_tcp_if_include=lo OMPI_MCA_btl_tcp_if_include=lo
ENV
}

all_idle()
{
    [ "$(timeout 3 sinfo -h -N -t idle -o %N 2>/dev/null | wc -l)" = "$nodes" ]
}

up()
{
    local tool i
    [ "$(id -u)" = 0 ] || die "needs root" 77
    for tool in munged slurmctld slurmd sbatch srun unshare; do
        command -v "$tool" >/dev/null || die "$tool is missing (Debian: slurmctld slurmd munge)" 77
    done
    unshare --uts --mount true 2>/dev/null || die "no UTS and mount namespaces here" 77
    [ ${#folder} -le 60 ] || die "the folder's name is too long for sockets: $folder"
    [ ! -e "$folder" ] || die "$folder exists"
    mkdir -p "$folder"/{run,log,state,spool,munge,tmp,local}
    chmod 755 "$folder" "$folder/run"
    chmod 700 "$folder/munge"
    (umask 077 && head -c 128 /dev/urandom >"$folder/munge/key")
    # --force: folders above it, such as /tmp, may be writable by others.
    munged --force --key-file="$folder/munge/key" --seed-file="$folder/munge/seed" \
        --socket="$folder/run/munge" --pid-file="$folder/run/munged.pid" \
        --log-file="$folder/log/munged" --num-threads=2 2>"$folder/log/munged.err" ||
        die "munged: $(cat "$folder/log/munged.err")"
    write_configuration
    export SLURM_CONF=$folder/slurm.conf
    slurmctld -c -f "$SLURM_CONF"
    for i in $(seq "$nodes"); do
        mkdir -p "$folder/spool/node$i" "$folder/tmp/node$i"
        # Not the caller's job, if this runs in one.
        env -u SLURM_JOB_ID unshare --uts --mount sh -c "hostname node$i &&
            mount -t tmpfs -o size=64m tmpfs '$folder/local' &&
            exec slurmd -f '$SLURM_CONF' -N node$i"
    done
    if ! wait_for 200 all_idle; then
        tail -n 5 "$folder"/log/* >&2
        down
        die "the nodes did not come up"
    fi
}

no_jobs()
{
    [ -z "$(timeout 3 squeue -h 2>/dev/null)" ]
}

down()
{
    local file process
    export SLURM_CONF=$folder/slurm.conf
    if running "$(cat "$folder/run/slurmctld.pid" 2>/dev/null)"; then
        timeout 5 scancel -Q -u root 2>/dev/null || true
        wait_for 80 no_jobs || true
    fi
    for file in "$folder"/run/slurmd.*.pid; do
        stop "$file"
    done
    # What a lost slurmd left behind: its slurmstepds hold files of this folder open.
    for process in /proc/[0-9]*; do
        if [[ $(readlink "$process/exe" 2>/dev/null || true) == */slurmstepd* ]] &&
            readlink "$process"/fd/* 2>/dev/null | grep -q "^$folder/"; then
            kill -9 "${process#/proc/}" 2>/dev/null || true
        fi
    done
    stop "$folder/run/slurmctld.pid"
    stop "$folder/run/munged.pid"
}

PATH=$PATH:/usr/sbin:/sbin
verb=${1:-} folder=${2:-} nodes=${3:-2} cpus=${4:-2}
case $folder in
/*) ;;
*) die "usage: cluster.sh up|down FOLDER(absolute) [NODES CPUS]" 2 ;;
esac
case $verb in
up) up ;;
down) down ;;
*) die "no '$verb': up or down" 2 ;;
esac
