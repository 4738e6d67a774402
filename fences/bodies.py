"""
Pieces that the programs of several probes are made of, as text: they run in the workspace and know nothing of ours.

A program may be one of many in one process, so a body leaves nothing behind in it: what changes the process, or may end
it, is done `in_child`.
"""

from __future__ import annotations

from fences.witnesses import dns_query

__all__ = ["ASK", "IN_CHILD", "LIBC", "MOUNTS", "OWN_FOLDERS", "ROUTE", "WALK"]

ASK = """
def ask(place):
    kind, host, port = place.split(" ")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM if kind == "udp" else socket.SOCK_STREAM) as client:
        client.settimeout(20)
        client.connect((host, int(port)))
        if kind == "udp":
            client.send(bytes.fromhex("QUERY"))
        return client.recv(4096) or {"signature": "EMPTY"}
for name, place in args.items():
    if place:
        attempt(name, lambda: ask(place))
""".replace("QUERY", dns_query().hex())
"""Asks every place that the program was told of."""

ROUTE = """
def route(address, family):
    with socket.socket(family, socket.SOCK_DGRAM) as client:
        client.connect((address, 53))
    return {"fact": "there is a route"}
"""
"""A datagram socket's `connect` asks the kernel for a route and sends nothing."""

LIBC = """
libc = ctypes.CDLL(None, use_errno=True)
def check(status):
    if status < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return status
"""

IN_CHILD = """
import signal
def in_child(action):
    reader, writer = os.pipe()
    try:
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(20)
                try:
                    answer = action()
                except Exception as error:
                    answer = {"signature": sign(error)}
                os.write(writer, json.dumps(answer).encode())
            finally:
                os._exit(0)
        os.close(writer)
        writer = -1
        said = b""
        while part := os.read(reader, 65536):
            said += part
        status = os.waitpid(child, 0)[1]
    finally:
        os.close(reader)
        if writer >= 0:
            os.close(writer)
    if os.WIFSIGNALED(status):
        return {"signature": signal.Signals(os.WTERMSIG(status)).name}
    return json.loads(said)
"""
"""`in_child(action)`: what `action` answered in a child, or the name of the signal that ended it."""

OWN_FOLDERS = ("/workspace", "/tmp", "/dev/shm")  # noqa: S108 - in a workspace
"""Where a seat may write, and what it finds there is its own."""

MOUNTS = f"""
OWN_FOLDERS = {OWN_FOLDERS!r}
def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            left, _, right = line.rstrip("\\n").partition(" - ")
            part, place, options = left.split(" ")[3:6]
            for code, letter in (("\\\\040", " "), ("\\\\011", "\\t"), ("\\\\012", "\\n"), ("\\\\134", "\\\\")):
                part, place = part.replace(code, letter), place.replace(code, letter)
            kind, _, whole = right.split(" ", 2)
            whole = whole.split(" ")[-1].split(",")
            options = options.split(",")
            yield {{"place": place, "part": part, "kind": kind, "options": options,
                    "read_only": "ro" in options or "ro" in whole}}
def inside(place, root):
    return place == root or place.startswith(root.rstrip("/") + "/")
"""
"""`mounts()`: what is mounted, in the order it was in. `read_only` may be the mount's or its file system's own."""

WALK = """
import stat
KERNEL = ("proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue")
IMAGE = ("/", "/bin", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt", "/root", "/run",
         "/sbin", "/srv", "/usr", "/var")
def look(path):
    try:
        return os.lstat(path)
    except OSError:
        return None
def entries(skip=()):
    # The image's own folders are known by its digest: what is not of the image has come by a mount.
    left = 60000
    for place in dict.fromkeys(item["place"] for item in mounts()
                               if item["kind"] not in KERNEL and not (item["place"] in IMAGE and item["read_only"])):
        top = look(place)
        if top is None or place in skip:
            continue
        yield place, top
        for folder, folders, names in os.walk(place) if stat.S_ISDIR(top.st_mode) else ():
            kept = []
            for name in folders + names:
                path = os.path.join(folder, name)
                info = look(path)
                left -= 1
                if left < 0:
                    raise OverflowError("too much to look through")
                if info is None:
                    continue
                yield path, info
                if stat.S_ISDIR(info.st_mode) and info.st_dev == top.st_dev:
                    kept.append(name)
            folders[:] = kept
"""
"""
After `MOUNTS`, `entries()`: every path that a mount has brought into the workspace, each mount once, with its `lstat`.
"""
