#!/bin/sh
# Real ssh to the hosts of hosts.sh: run on h0, it starts an sshd on each of h1 to hN, on that host's address alone, and
# prints "ready" when all listen. They end with the hosts.
#
#   ssh.sh N
#
# Keys, configurations and known hosts are made anew below /run/ssh. Nothing of the user is read or written:
# `/run/ssh/as COMMAND...` runs a command where the home directory is /run/ssh/home, whose .ssh/config ssh finds by itself.
# Besides the hosts this configuration knows t1 to t19, which are they again and again, and some that cannot be reached, each
# for a reason of its own. A program in /run/ssh/here is not on hN.
set -eu
export PATH="$PATH:/usr/sbin:/sbin"
base=/run/ssh
home=$base/home
mkdir $base $base/here
mkdir -m 700 $home $home/.ssh
# Where sshd locks its helper in.
mkdir -p -m 755 /run/sshd

fail() {
    echo "ssh.sh: $1" >&2
    tail -n 20 $base/log.* >&2
    exit 1
}

key() { ssh-keygen -q -t ed25519 -N '' -C gasworks -f "$1"; }
key $base/user
key $base/stranger
cp $base/user.pub $base/authorized

# A home, a shell that reads no files, and an account that is not locked.
sed "s|^root:.*|root:x:0:0:root:$home:/bin/sh|" /etc/passwd >$base/passwd
(umask 077 && echo 'root:*:::::::' >$base/shadow)
cat >$base/as <<'AS'
#!/bin/sh
exec unshare --mount sh -c '
    mount --bind /run/ssh/passwd /etc/passwd
    mount --bind /run/ssh/shadow /etc/shadow
    exec "$@"' sh "$@"
AS
chmod 755 $base/as

for i in $(seq 19); do
    printf 'Host t%d\n    HostName h%d\n' "$i" $(((i - 1) % $1 + 1))
done >$home/.ssh/config
cat >>$home/.ssh/config <<CONF
Host refusing
    HostName h2
    IdentityFile $base/stranger
Host unknown
    HostName h2
    HostKeyAlias nobody
Host closed
    HostName h2
    Port 9
Host nowhere
    HostName 10.78.0.99
Host !refusing *
    IdentityFile $base/user
Host *
    User root
    HostKeyAlgorithms ssh-ed25519
    IdentitiesOnly yes
    UserKnownHostsFile $base/known
    GlobalKnownHostsFile $base/none
    SendEnv GASWORKS_TEST_MARK
CONF
chmod 600 $home/.ssh/config
cp $home/.ssh/config $base/config

for i in $(seq 1 "$1"); do
    key "$base/h$i"
    echo "h$i $(cut -d ' ' -f 1,2 "$base/h$i.pub")" >>$base/known
    cat >"$base/sshd.h$i" <<CONF
ListenAddress 10.78.0.$((i + 1))
HostKey $base/h$i
AuthorizedKeysFile $base/authorized
AuthenticationMethods publickey
PermitRootLogin prohibit-password
PermitUserRC no
PidFile none
UsePAM no
AcceptEnv GASWORKS_TEST_MARK
CONF
    missing=:
    [ "$i" != "$1" ] || missing="mount -t tmpfs gasworks $base/here"
    /run/rsh "h$i" "$base/as sh -c '$missing; exec $(command -v sshd) -D -e -f $base/sshd.h$i'" >"$base/log.h$i" 2>&1 &
done
for i in $(seq 1 "$1"); do
    tries=0
    until grep -q 'Server listening' "$base/log.h$i"; do
        tries=$((tries + 1))
        [ $tries -lt 200 ] || fail "sshd of h$i did not come up"
        sleep 0.05
    done
done
echo ready
wait
