"""
A headless Chromium by its own protocol, over two pipes: what a page writes to the console, what it asks for, how it
looks.

What the browser asks for by itself (updates, the time) is none of the page's, and is not told here: the protocol's
events are those of one page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    *("--disable-extensions", "--remote-debugging-pipe"),
)
PATIENCE_S = 60.0
QUIET_S = 0.5
"""So long a page is watched after it has loaded: what it does later than at once is seen too."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """What came of one page: errors and warnings of its console, addresses it asked for, its width, its picture."""

    console: list[str]
    requests: list[str]
    scroll_width: int
    png: bytes


class Browser:
    """One running browser; `look` opens one page after another in tabs of their own."""

    def __init__(self, orders: int, answers: int) -> None:
        self._orders, self._answers = orders, answers
        self._rest = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def _next(self, patience_s: float) -> dict[str, Any] | None:
        """The next message, or None if there is none for so long."""
        until = time.monotonic() + patience_s
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self._answers, 1 << 20) if ready else b""
            if not ready:
                return None
            assert part, "the browser went away"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """Send one command and wait for its answer; events are kept."""
        self._number += 1
        order = {"id": self._number, "method": method, "params": params}
        os.write(self._orders, json.dumps(order | ({"sessionId": session} if session else {})).encode() + b"\0")
        while (message := self._next(PATIENCE_S)) is not None:
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message['error']}"
                return message["result"]
            self.events.append(message)
        raise AssertionError(f"{method}: no answer in {PATIENCE_S} s")

    def _wait_for(self, method: str) -> None:
        while not any(event["method"] == method for event in self.events):
            message = self._next(PATIENCE_S)
            assert message is not None, f"no {method} in {PATIENCE_S} s"
            self.events.append(message)

    def look(self, page: Path, *, width: int, dark: bool = False, media: str = "screen") -> Look:
        """Open a page, wait until it is done, and tell what it did and how it looks."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", session, **sizes)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", session, media=media, features=[scheme])
        self.events.clear()
        self.call("Page.navigate", session, url=page.as_uri())
        self._wait_for("Page.loadEventFired")
        while (message := self._next(QUIET_S)) is not None:
            self.events.append(message)
        asked = {"expression": "document.documentElement.scrollWidth", "returnByValue": True}
        scroll = self.call("Runtime.evaluate", session, **asked)["result"]["value"]
        shot = self.call("Page.captureScreenshot", session, format="png", captureBeyondViewport=True)
        found = Look(
            console=list(_complaints(self.events)),
            requests=[url for url in _asked(self.events) if url != page.as_uri() and not url.startswith("data:")],
            scroll_width=scroll,
            png=base64.b64decode(shot["data"]),
        )
        self.call("Target.closeTarget", targetId=target)
        return found


def _complaints(events: list[dict[str, Any]]) -> Iterator[str]:
    """Errors and warnings of scripts, of the console, and of the browser about the page (its policy's refusals)."""
    for event in events:
        params = event.get("params", {})
        match event["method"]:
            case "Runtime.exceptionThrown":
                yield params["exceptionDetails"]["text"]
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                yield " ".join(str(part.get("value")) for part in params["args"])
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                yield params["entry"]["text"]


def _asked(events: list[dict[str, Any]]) -> Iterator[str]:
    """The addresses asked for. What the page's own policy refused left nowhere: it is a complaint, and no request."""
    refused = {
        event["params"]["requestId"]
        for event in events
        if event["method"] == "Network.loadingFailed" and event["params"].get("blockedReason") == "csp"
    }
    for event in events:
        if event["method"] == "Network.requestWillBeSent" and event["params"]["requestId"] not in refused:
            yield event["params"]["request"]["url"]
        if event["method"] == "Network.webSocketCreated":
            yield event["params"]["url"]


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser with a new profile in the folder `profile`, ended with the block."""
    program = shutil.which("chromium")
    assert program, "there is no chromium: install it (Debian: apt-get install chromium)"
    theirs_in, orders = os.pipe()
    answers, theirs_out = os.pipe()
    # The protocol's pipes are the descriptors 3 and 4, and a shell puts them there.
    words = [
        "bash",
        "-c",
        f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}',
        "bash",
        program,
        *OPTIONS,
        f"--user-data-dir={profile}",
    ]
    running = subprocess.Popen(
        words, pass_fds=(theirs_in, theirs_out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    os.close(theirs_in)
    os.close(theirs_out)
    found = Browser(orders, answers)
    try:
        yield found
        found.call("Browser.close")
    finally:
        os.close(orders)
        try:
            running.wait(20)
        except subprocess.TimeoutExpired:
            running.kill()
            running.wait()
        os.close(answers)
