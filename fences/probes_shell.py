"""Probes in the shell's language: redirections, globs, and the programs that an image happens to have."""

from __future__ import annotations

from fences.classifier import ABSENT, DENIED
from fences.shell_programs import NO_CLIENT, ShellProbe
from fences.weakenings import (
    ANY_CALL,
    HOST_PIDS,
    KEEPER_NOT_APART,
    WRITABLE_ROOT,
    NotMeasuredError,
    mounted,
    walls_changed,
)
from fences.witnesses import vouch
from harness.views import Fence, Finding, Site

__all__ = [
    "ShellEnvironmentProbe",
    "ShellFilesProbe",
    "ShellKeeperProbe",
    "ShellLoopbackProbe",
    "ShellNetworkProbe",
    "ShellPrivilegesProbe",
    "ShellProcessesProbe",
    "ShellWritesProbe",
]


class ShellFilesProbe(ShellProbe):
    """A file of the host, by programs, redirections, globs, links and a search."""

    name = "shell-files"
    threat = "a command line reads the host's files by a way that a library's open would not take"
    places = ("host-file", "home")
    canary = "host-file"
    body = """
file=${host_file#file }
mine=.proctor-$$
bring cat cat "$file"
bring redirection sh -c 'read -r line < "$1" && printf "%s\\n" "$line"' sh "$file"
bring glob sh -c 'cat "$1"/host-f*' sh "$home"
bring "root of a process" cat "/proc/self/root$file"
bring "root of the first process" cat "/proc/1/root$file"
bring link sh -c 'ln -s "$1" "$2" && cat "$2"; code=$?; rm -f "$2"; exit $code' sh "$file" "/workspace/$mine"
bring copy sh -c 'cp "$1" "$2" && cat "$2"; code=$?; rm -f "$2"; exit $code' sh "$file" "/tmp/$mine"
bring search sh -c 'find /tmp /mnt /media /srv /home /opt -name host-file -exec cat {} + 2>/dev/null; true'
"""

    async def witness(self, site: Site) -> str | None:
        """The file must be there."""
        return await vouch(site, ("host-file",), "host-file")

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The decoys' folder shown in the workspace."""
        return mounted(fence, site.places["home"])


class ShellWritesProbe(ShellProbe):
    """Files, folders and links made in the image's own folders and among its devices."""

    name = "shell-writes"
    threat = "a command line changes the image: a start file, a program that is found first"
    holds = frozenset({Finding.DENIED})
    body = """
mine=.proctor-$$
for folder in /etc /usr/bin /dev /var/lib; do
    deed "$folder" sh -c ': > "$1" && rm -f "$1"' sh "$folder/$mine"
done
deed mkdir sh -c 'mkdir "$1" && rmdir "$1"' sh "/$mine"
deed copy sh -c 'cp /bin/sh "$1" && rm -f "$1"' sh "/usr/bin/$mine"
deed link sh -c 'ln -s /workspace "$1" && rm -f "$1"' sh "/etc/$mine"
deed append sh -c ': >> /etc/passwd'
"""
    down = WRITABLE_ROOT


class ShellEnvironmentProbe(ShellProbe):
    """The harness's decoy variable: in the shell's own environment and in that of each process that it sees."""

    name = "shell-environment"
    threat = "a key of the harness's is one `env` away"
    places = ("variable",)
    canary = "variable"
    body = """
bring env sh -c 'all=$(env) || exit; case "$all" in *"$1="*) printf "%s\\n" "$all";; esac' sh "$variable"
bring export sh -c 'all=$(export -p) || exit; case "$all" in *"$1="*) printf "%s\\n" "$all";; esac' sh "$variable"
bring "first process" sh -c 'all=$(tr "\\000" " " < /proc/1/environ) || exit
    case "$all" in *"$1="*) printf "%s\\n" "$all";; esac' sh "$variable"
bring "other processes" sh -c 'for file in /proc/[0-9]*/environ; do
    all=$(tr "\\000" " " < "$file") 2>/dev/null
    case "$all" in *"$1="*) printf "%s\\n" "$all";; esac
done' sh "$variable"
"""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The variable handed over, as a careless pass-through would."""
        handed = {**fence.walls.environment, site.places["variable"]: site.canaries["variable"]}
        return walls_changed(fence, environment=handed)


class ShellProcessesProbe(ShellProbe):
    """The host's marked process, looked for in /proc and by the programs that list processes."""

    name = "shell-processes"
    threat = "a command line lists the host's processes and their arguments"
    holds = frozenset({Finding.ABSENT})
    places = ("marker",)
    canary = "process"
    body = """
bring "/proc" sh -c 'for file in /proc/[0-9]*/cmdline; do
    line=$(tr "\\000" " " < "$file") 2>/dev/null
    case "$line" in *"$1="*) printf "%s\\n" "$line";; esac
done' sh "$marker"
bring ps sh -c 'all=$(ps -eo args) || exit; case "$all" in *"$1="*) printf "%s\\n" "$all";; esac' sh "$marker"
"""
    down = HOST_PIDS

    async def witness(self, site: Site) -> str | None:
        """The process must be alive."""
        return await vouch(site, ("process",), "process")


class ShellKeeperProbe(ShellProbe):
    """A signal to the workspace's first process, which it would heed. None is sent that does anything."""

    name = "shell-keeper"
    threat = "one `kill` ends the workspace from inside"
    holds = frozenset({Finding.DENIED})
    denied = DENIED | {"IGNORED"}
    body = """
deed "kill 1" sh -c 'kill -0 1 || exit
while read -r name mask; do
    case $name in
        SigBlk:|SigCgt:) low=${mask#"${mask%????}"}; [ $((0x$low & 0x4000)) -eq 0 ] || exit 0;;
    esac
done < /proc/1/status
read -r call rest < /proc/1/syscall || exit
case $call in 128|137) exit 0;; esac
echo "it ignores the signal"; exit 3'
"""
    down = KEEPER_NOT_APART


class ShellPrivilegesProbe(ShellProbe):
    """The programs that mount, change roots, enter namespaces and become other users, as far as the image has them."""

    name = "shell-privileges"
    threat = "a program of the image does for the seat what the seat may not do itself"
    holds = frozenset({Finding.DENIED})
    absent = ABSENT | {NO_CLIENT, "EINVAL"}  # in a user namespace without a root there is none to become
    body = """
mine=/tmp/.proctor-$$
deed mount mount -t tmpfs none /tmp
deed umount umount /dev/shm
deed unshare unshare -U true
deed "unshare mounts" unshare -m true
deed chroot chroot / true
deed nsenter nsenter -t 1 -m true
deed setpriv setpriv --reuid 0 true
deed mknod sh -c 'mknod "$1" c 1 3 && rm -f "$1"' sh "$mine"
deed chown sh -c ': > "$1" && chown 0:0 "$1"; code=$?; rm -f "$1"; exit $code' sh "$mine"
deed sudo sudo -n true
"""
    down = ANY_CALL


class _ShellReachProbe(ShellProbe):
    """A listener of the host, called by each client that the image has."""

    canary = "loopback"
    body = """
set -- $place
bring bash timeout 15 bash -c 'exec 3<>"/dev/tcp/$1/$2" && read -r line <&3 && printf "%s\\n" "$line"' bash "$2" "$3"
bring perl timeout 15 perl -MSocket -e 'socket(S, PF_INET, SOCK_STREAM, 0) or die "$!\\n";
    connect(S, pack_sockaddr_in($ARGV[1], inet_aton($ARGV[0]))) or die "$!\\n"; print scalar <S>' "$2" "$3"
bring nc timeout 15 nc -v -w 10 "$2" "$3"
bring curl timeout 15 curl -v --http0.9 --max-time 10 "http://$2:$3/"
bring wget timeout 15 wget -T 10 -t 1 -O - "http://$2:$3/"
"""

    async def witness(self, site: Site) -> str | None:
        """The listener must answer the host."""
        assert self.canary is not None  # each of these probes names one
        return await vouch(site, self.places, self.canary)

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """The host's own network."""
        if not any(name in site.places for name in self.places):
            raise NotMeasuredError(f"this host has no decoy of {', '.join(self.places)}")
        return walls_changed(fence, network="host")


class ShellLoopbackProbe(_ShellReachProbe):
    """The host's loopback. A refusal comes from the workspace's own, while the host confirms that its own is up."""

    name = "shell-loopback"
    threat = "a command line calls a service on the host's loopback"
    places = ("loopback",)
    absent = ABSENT | {NO_CLIENT, "ECONNREFUSED"}
    body = _ShellReachProbe.body.replace("$place", "$loopback")


class ShellNetworkProbe(_ShellReachProbe):
    """The host's primary address, where a refusal would mean that a packet got out."""

    name = "shell-network"
    threat = "a command line reaches the host, or through it the network"
    holds = frozenset({Finding.DENIED})
    places = ("address",)
    canary = "address"
    body = _ShellReachProbe.body.replace("$place", "$address")
