#!/bin/sh
# A Slurm of its own over the hosts of hosts.sh: run on h0, it starts the daemons, with h1 to hN as the nodes, and prints
# "ready" when all are idle. Clients need SLURM_CONF=/run/slurm/slurm.conf. It ends, and its daemons with it, with the
# hosts: all it writes is in their /run. /run/slurm/bin/aprun stands in for ALPS.
#
#   slurm.sh N
set -eu
export PATH="$PATH:/usr/sbin:/sbin"
base=/run/slurm
mkdir $base $base/log $base/state $base/bin
mkdir -m 711 $base/munge
(umask 077 && head -c 128 /dev/urandom >$base/munge/key)

printf '#!/bin/sh\nexec srun "$@"\n' >$base/bin/aprun
chmod 755 $base/bin/aprun

fail() {
    echo "slurm.sh: $1" >&2
    tail -n 20 $base/log/* >&2
    exit 1
}

munged --foreground --key-file=$base/munge/key --socket=$base/munge/socket --pid-file=$base/munge/pid \
    --log-file=$base/log/munged --seed-file=$base/munge/seed >$base/log/munged.out 2>&1 &

{
    cat <<CONF
ClusterName=gasworks
SlurmctldHost=h0(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$base/munge/socket
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
KillWait=2
SlurmctldPidFile=$base/slurmctld.pid
SlurmdPidFile=$base/slurmd-%n.pid
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool-%n
TmpFS=$base/tmp-%n
SlurmctldLogFile=$base/log/slurmctld
SlurmdLogFile=$base/log/slurmd-%n
SlurmdParameters=config_overrides
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8
CONF
    for i in $(seq 1 "$1"); do
        echo "NodeName=h$i NodeAddr=10.78.0.$((i + 1)) CPUs=8 RealMemory=1000 State=UNKNOWN"
    done
} >$base/slurm.conf
export SLURM_CONF=$base/slurm.conf

wait_for() { # WHAT COMMAND...: at most ten seconds
    what=$1
    shift
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "$what did not come up"
        sleep 0.05
    done
}
wait_for munged test -S $base/munge/socket
slurmctld -D -i -c >$base/log/slurmctld.out 2>&1 &
for i in $(seq 1 "$1"); do
    mkdir "$base/spool-h$i" "$base/tmp-h$i"
    /run/rsh "h$i" "SLURM_CONF=$SLURM_CONF exec slurmd -D -N h$i" >"$base/log/slurmd-h$i.out" 2>&1 &
done
idle() { [ "$(sinfo --noheader --Node --format=%T 2>/dev/null | grep -c '^idle$')" = "$nodes" ]; }
nodes=$1
wait_for "a node of $1" idle
echo ready
wait
