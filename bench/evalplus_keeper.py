# ruff: noqa: ANN201, PTH123 - it runs in the interpreter of EvalPlus, of whatever version that is
"""
Keeps watch over one `evalplus.evaluate` inside a sandbox; runs in EvalPlus's interpreter, with nothing of ours.

The evaluator is a process of its own in a session of its own. Once it has ended, kept.json says with which status, how
many other processes are alive, and whether the file of the ground truth is still what it was before the candidate ran.
"""

import glob
import hashlib
import json
import os
import subprocess
import sys
import time

EVALUATE = """
import time, types
import evalplus.evaluate as evaluator
from evalplus.data import get_human_eval_plus
from evalplus.data.humaneval import get_human_eval_plus_hash
evaluator.get_groundtruth(get_human_eval_plus(), get_human_eval_plus_hash(), [])
open("ready", "w").close()
while not __import__("os").path.exists("go"):
    time.sleep(0.01)
evaluator.time = types.SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.05))
evaluator.evaluate("humaneval", samples="samples.jsonl", parallel=1)
"""


def truth():
    """The digest of the ground truth's files."""
    digest = hashlib.sha256()
    for path in sorted(glob.glob("cache/evalplus/*.pkl")):  # noqa: PTH207 - as above
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def others():
    """Processes that are alive beside this one and the sandbox's first."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdigit() and int(name) not in (1, os.getpid()):
            try:
                with open("/proc/" + name + "/stat") as file:
                    state = file.read().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if state not in "ZX":
                found.append(name)
    return found


def main():
    """Start, watch, tell."""
    evaluator = subprocess.Popen([sys.executable, "-c", EVALUATE], start_new_session=True)
    while not os.path.exists("ready") and evaluator.poll() is None:  # noqa: PTH110 - as above
        time.sleep(0.01)
    before = truth()
    with open("go", "w"):
        pass
    status = evaluator.wait()
    time.sleep(0.2)
    said = {"status": status, "outlived": len(others()), "altered": truth() != before}
    with open("kept.json", "w") as file:
        json.dump(said, file)


main()
