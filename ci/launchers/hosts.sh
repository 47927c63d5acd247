#!/bin/sh
# Hosts of their own on one machine: h0, which has the bridge, and h1 to hN. Each has its own network, name, /dev/shm and
# System V memory; they share the file system, as the hosts of a cluster share theirs, and a process namespace, which
# ends with this script. So whatever way this script ends (its standard input is closed, or it is killed), nothing is
# left of the hosts, of what runs on them, or of what was written to /run, where all their temporary files belong.
#
#   unshare --mount --uts --ipc --net --pid --fork --kill-child --mount-proc sh ci/launchers/hosts.sh N
#
# prints "ready" when they are up. /run/host/NAME is the process that keeps the host NAME; `/run/rsh NAME COMMAND` runs a
# command there as ssh would: it takes the same options, looks at none, and hands no environment on, but for the mark by
# which the processes of a test are known.
set -eu
export PATH="$PATH:/usr/sbin:/sbin"

mount -t tmpfs -o mode=755,size=1g gasworks /run
mkdir -m 1777 /run/tmp
mkdir /run/host
cat >/run/rsh <<'RSH'
#!/bin/sh
while case $1 in -[bcDEeFIiJLlmOopQRSWw]) shift 2 ;; -*) shift ;; *) false ;; esac; do :; done
keeper=$(cat "/run/host/$1" 2>/dev/null) || { echo "/run/rsh: no host $1" >&2; exit 255; }
shift
exec env -i PATH="$PATH" HOME=/run/tmp TMPDIR=/run/tmp GASWORKS_TEST_MARK="${GASWORKS_TEST_MARK:-}" \
    nsenter --target "$keeper" --net --uts --ipc --mount -- sh -c "cd; $*"
RSH
chmod 755 /run/rsh

cp /etc/hosts /run/hosts
for i in $(seq 0 "$1"); do
    echo "10.78.0.$((i + 1)) h$i" >>/run/hosts
done
mount --bind /run/hosts /etc/hosts

# What makes a host of new namespaces; its network is made from outside.
become='hostname "$0"; mount -t tmpfs -o size=512m gasworks /dev/shm; ip link set lo up'

sh -ec "$become" h0
echo $$ >/run/host/h0
ip link add bridge type bridge
ip address add 10.78.0.1/24 dev bridge
ip link set bridge up
for i in $(seq 1 "$1"); do
    keep='echo $$ >"/run/host/$0"; exec sleep infinity'
    unshare --mount --uts --ipc --net sh -ec "$become; $keep" "h$i" </dev/null >/dev/null &
done
for i in $(seq 1 "$1"); do
    until keeper=$(cat "/run/host/h$i" 2>/dev/null) && [ -n "$keeper" ]; do sleep 0.01; done
    ip link add "port$i" type veth peer name eth0 netns "$keeper"
    ip link set "port$i" master bridge up
    nsenter --target "$keeper" --net sh -ec "ip address add 10.78.0.$((i + 1))/24 dev eth0; ip link set eth0 up"
done
echo ready

# The first process of a namespace reaps its orphans: waiting does that, reading would not.
exec 3<&0
cat <&3 >/dev/null &
wait $!
