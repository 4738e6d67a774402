"""
Probes of the gateway, in its own language: requests that a program of the seat's sends through the workspace's own
forwarder, byte for byte.

Where a policy has no gateway nothing listens, which the attempt must find; its control has one, and a plain byte proxy
in place of ours.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from fences.classifier import Try, weigh
from fences.gateway_talk import (
    DECODING,
    MODEL,
    NOBODY,
    NOTHING,
    PATHS,
    SIGNS,
    Sent,
    Upstream,
    body,
    gateway_up,
    post,
    rules_of,
    send_all,
)
from fences.weakenings import walls_changed
from harness.ports import Workspace
from harness.views import Attempt, Fence, Finding, Site

__all__ = [
    "GatewayAddressProbe",
    "GatewayChoicesProbe",
    "GatewayDuplicatesProbe",
    "GatewayFramingProbe",
    "GatewayHostedToolProbe",
    "GatewayImageProbe",
    "GatewayKeyProbe",
    "GatewayMethodProbe",
    "GatewayModelProbe",
    "GatewayPathProbe",
    "GatewaySizeProbe",
    "GatewayTokensProbe",
]

_REFUSALS = frozenset({*range(400, 500), 501, 505} - {429})
"""
Statuses that say no to a request for what it is: 501 and 505 are about its method and version. 429 is about how many
there are, and would say nothing of this one.
"""

_CHAT = PATHS["openai"]
_ROOM = 64 << 10
"""Bytes beyond a limit."""

_MOST_SENT = 2 << 20
"""Of a body that is too long no more is sent: its length is told before."""


class _GatewayProbe(ABC):
    """Requests of one kind that must not get through. An honest one must, or nothing is said by the others' refusal."""

    name: ClassVar[str]
    threat: ClassVar[str]
    language: ClassVar[str] = "gateway"
    holds: frozenset[Finding] = frozenset({Finding.ABSENT, Finding.DENIED})
    structural: ClassVar[bool] = False
    honest: ClassVar[int | None] = 1
    """How many requests may reach the model: the honest one. None where it is about what they bring along."""

    def weaken(self, fence: Fence, site: Site) -> Fence:
        """A byte proxy in place of the gateway, in a workspace that has one."""
        del site
        return replace(walls_changed(fence, network="gateway"), lifted=("gateway-rules",))

    @abstractmethod
    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """The requests."""

    def judged(self, item: Try, upstream: Upstream) -> Try:
        """What became of one request, by what came back: the canary is in it where somebody served it."""
        if item.got is None or upstream.canary.encode() in item.got:
            return item
        status = _status(item.got)
        if status in _REFUSALS:
            return Try(what=item.what, signature="REFUSED")
        return Try(what=item.what, signature="an answer that is no HTTP" if status is None else f"HTTP {status}")

    async def attempt(self, workspace: Workspace, fence: Fence, site: Site) -> Attempt:
        """Send an honest request and the hostile ones, and look at what came back and what got through."""
        del site
        async with gateway_up(workspace, rules_of(fence)) as upstream:
            honest = Sent(what="an honest request", data=post(body()))
            found = await send_all(workspace, [honest, *self.hostile(fence, upstream)])
            if isinstance(found, str):
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=found)
            if workspace.gateway is None:
                witness = None if await upstream.up() else "the host's toy of a model's server is down outside too"
                return weigh(found, canary=upstream.canary, absent=NOBODY, denied=SIGNS, witness=witness)
            if upstream.canary.encode() not in (found[0].got or b""):
                said = found[0].signature or "something else"
                evidence = f"the gateway does not serve an honest request: {said}"
                return Attempt(finding=Finding.INCONCLUSIVE, evidence=evidence)
            return weigh(self.judged_all(found[1:], upstream), canary=upstream.canary, absent=NOTHING, denied=SIGNS)

    def judged_all(self, found: Sequence[Try], upstream: Upstream) -> list[Try]:
        """What became of all of them, and whether one reached the model whatever it was told."""
        tries = [self.judged(item, upstream) for item in found]
        if upstream.counts.get("refused", 0) < sum(item.signature in {"REFUSED", "CLOSED"} for item in tries):
            tries.append(Try(what="the gateway", signature="it tells of fewer refusals than the seat has seen"))
        if self.honest is not None and len(upstream.requests) > self.honest:
            tries.append(Try(what="the model", fact="more than the honest request reached it"))
        return tries


def _status(answer: bytes) -> int | None:
    head = answer.split(b"\r\n", 1)[0].split(b" ")
    return int(head[1]) if len(head) > 1 and head[0].startswith(b"HTTP/1.") and head[1].isdigit() else None


class GatewayPathProbe(_GatewayProbe):
    """Other paths than a chat's, and spellings that another reader would take for one."""

    name = "gateway-path"
    threat = "the seat reaches what else the model's server has: files, fine-tunes, other people's answers"
    PATHS: ClassVar[tuple[str, ...]] = (
        "/admin", "/v1/models", "/v1/files", "/api/pull", f"{_CHAT}/../../admin", f"/v1/../admin{_CHAT}",
        f"/{_CHAT}", f"{_CHAT}/", f"{_CHAT}?admin=1", f"{_CHAT}%00", "/v1/chat%2fcompletions", f"{_CHAT};admin",
    )  # fmt: skip

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """An honest body to each."""
        del fence, upstream
        return [Sent(what=path, data=post(body(), path=path)) for path in self.PATHS]


class GatewayModelProbe(_GatewayProbe):
    """Another model than the condition's, or none."""

    name = "gateway-model"
    threat = "the seat has a better model answer than the one that is measured"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Names that are not the pinned one."""
        del fence, upstream
        names = ("another-model", f"{MODEL} ", MODEL.upper(), "", f"{MODEL}:latest")
        bodies = {repr(name): body(model=name) for name in names} | {"no model": body(model=None)}
        return [Sent(what=what, data=post(data)) for what, data in bodies.items()]


class GatewayMethodProbe(_GatewayProbe):
    """Every method but the one that a chat is asked with."""

    name = "gateway-method"
    threat = "the seat lists, changes or deletes what the model's server keeps, or tunnels through it"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """The same request by other methods."""
        del fence, upstream
        methods = ("GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "post", "PRI")
        return [Sent(what=method, data=post(body(), method=method)) for method in methods]


class GatewayAddressProbe(_GatewayProbe):
    """Requests that name an address of their own to be sent on to."""

    name = "gateway-address"
    threat = "the gateway fetches addresses for the seat: the host's loopback, a cloud's metadata, the internet"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Whole addresses in place of a path, and a tunnel."""
        del fence
        toy = f"127.0.0.1:{upstream.port}"
        forms = [f"http://{toy}{_CHAT}", "http://169.254.169.254/latest/meta-data/", f"//{toy}{_CHAT}", "*", f"@{toy}/"]
        whole = [Sent(what=form.replace(toy, "the host"), data=post(body(), path=form)) for form in forms]
        return [*whole, Sent(what="a tunnel", data=post(b"", path=toy, method="CONNECT"))]


class GatewayChoicesProbe(_GatewayProbe):
    """Many answers to one question, and fields that a gateway does not know the meaning of."""

    name = "gateway-choices"
    threat = "one metered call brings a hundred answers, or switches something on that nobody meters"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Each field in a body that is honest otherwise."""
        del fence, upstream
        fields = {"n": 100, "best_of": 100, "logprobs": True, "store": True, "unheard_of": 1, "service_tier": "flex"}
        return [Sent(what=name, data=post(body(**{name: value}))) for name, value in fields.items()]


class GatewayImageProbe(_GatewayProbe):
    """Parts that are no text: the provider itself would fetch an image's address, with the seat's words in it."""

    name = "gateway-image"
    threat = "the provider fetches an address of the seat's choice, and so carries its words outside"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """An image, a file and a sound, as parts of a message."""
        del fence
        address = f"http://127.0.0.1:{upstream.port}/secret"
        parts = {
            "image_url": {"type": "image_url", "image_url": {"url": address}},
            "file": {"type": "file", "file": {"file_id": "file-1"}},
            "input_audio": {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        }
        return [
            Sent(what=what, data=post(body(messages=[{"role": "user", "content": [part]}])))
            for what, part in parts.items()
        ]


class GatewayHostedToolProbe(_GatewayProbe):
    """Tools that the provider would run: a browser, a shell, somebody's server."""

    name = "gateway-hosted-tool"
    threat = "the provider runs a tool for the seat that has the network the seat has not"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Each kind, in a body that is honest otherwise."""
        del fence
        address = f"http://127.0.0.1:{upstream.port}/"
        tools: list[dict[str, Any]] = [
            {"type": "mcp", "server_label": "x", "server_url": address, "require_approval": "never"},
            {"type": "web_search"},
            {"type": "code_interpreter", "container": {"type": "auto"}},
            {"type": "computer_use_preview"},
        ]
        made = [Sent(what=str(tool["type"]), data=post(body(tools=[tool]))) for tool in tools]
        return [*made, Sent(what="web_search_options", data=post(body(web_search_options={})))]


class GatewayTokensProbe(_GatewayProbe):
    """A billion tokens asked for: what reaches the model must be no more than what is pinned."""

    name = "gateway-tokens"
    threat = "one call spends more than the budget that the seat was given"
    honest = None
    MANY: ClassVar[int] = 10**9
    FIELDS: ClassVar[tuple[str, ...]] = ("max_tokens", "max_completion_tokens")

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """By either name of the field, and as no number."""
        del fence, upstream
        made = [Sent(what=name, data=post(body(**{name: self.MANY}))) for name in self.FIELDS]
        odd = {"negative": -1, "no number": "1e9", "a fraction": 1.5}
        return [*made, *(Sent(what=what, data=post(body(max_tokens=value))) for what, value in odd.items())]

    def judged(self, item: Try, upstream: Upstream) -> Try:
        """An answer is no breach by itself: what was asked of the model is."""
        asked = max((request.decoding.num_predict for request in upstream.requests), default=0)
        many = item.what in self.FIELDS and str(self.MANY).encode() in upstream.heard
        if many or asked > DECODING.num_predict:
            return Try(what=item.what, fact="more tokens were asked of the model than are pinned")
        if item.got is not None and upstream.canary.encode() in item.got:
            return Try(what=item.what, signature="HELD")
        return super().judged(item, upstream)


class GatewayDuplicatesProbe(_GatewayProbe):
    """Bodies that two readers read as two different requests, and bodies that break a reader."""

    name = "gateway-duplicates"
    threat = "the gateway checks one request, and the provider serves another"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Keys twice, numbers that are none, nesting without end, bytes that are no text."""
        del fence, upstream
        honest = body().decode()
        asked = json.dumps([{"role": "user", "content": "Another question."}])
        deep = "[" * 20_000 + "]" * 20_000
        bodies = {
            "model twice": honest[:-1] + ', "model": "another-model"}',
            "model twice, in escapes": honest[:-1] + ', "mod\\u0065l": "another-model"}',
            "messages twice": honest[:-1] + f', "messages": {asked}}}',
            "NaN": honest[:-1] + ', "temperature": NaN}',
            "infinite": honest[:-1] + ', "temperature": 1e999}',
            "deep": honest[:-1] + f', "user": {deep}}}',
            "two bodies": honest + honest,
            "no object": f"[{honest}]",
        }
        made = {what: text.encode() for what, text in bodies.items()}
        made |= {"no UTF-8": body(user="x").replace(b'"x"', b'"\xff"'), "UTF-16": honest.encode("utf-16")}
        return [Sent(what=what, data=post(data)) for what, data in made.items()]


class GatewaySizeProbe(_GatewayProbe):
    """More than the rules allow of everything: bytes in a body and in a head, headers, a length without end."""

    name = "gateway-size"
    threat = "a request fills the harness's memory, and ends every cell that runs there"

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Each beyond the policy's own rules, and not far."""
        del upstream
        rules = fence.gateway
        most = rules.body_bytes + _ROOM
        line = min(rules.header_bytes + 1024, 60_000)
        wide = post(body(), headers=["X-Wide: " + "x" * line])
        return [
            Sent(what="a long body", data=post(b"", length=most), more=min(most, _MOST_SENT)),
            Sent(what="a length without end", data=post(body(), length=10**12)),
            Sent(what="a length that is no number", data=post(body(), length="9" * 40)),
            Sent(what="many headers", data=post(body(), headers=[f"X-{number}: y" for number in range(300)])),
            Sent(what="a long line", data=wide if line > rules.header_bytes else wide[:-4], more=_ROOM),
        ]


class GatewayFramingProbe(_GatewayProbe):
    """Requests whose end two readers see in two places: what the one takes for a body is the other's next request."""

    name = "gateway-framing"
    threat = "a second request travels inside of the first, unchecked and unmetered"
    honest = 2  # what stands before another request may be served

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """Lengths that disagree, pieces, lines that end as they should not."""
        del fence, upstream
        data, inner = body(), post(body(), path="/admin")
        pieces = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        bare = post(data).replace(b"\r\n", b"\n", 3)
        heads = {
            "in pieces": post(pieces, headers=["Transfer-Encoding: chunked"]),
            "in pieces, misspelt": post(pieces, headers=["Transfer-Encoding : chunked"]),
            "in pieces, in disguise": post(pieces, headers=["Transfer-Encoding: x, chunked"]),
            "two lengths": post(data, headers=["Content-Length: 0"]),
            "two lengths in one": post(data, length=f"{len(data)}, 0"),
            "a signed length": post(data, length=f"+{len(data)}"),
            "a request behind the body": post(data + inner, length=len(data)),
            "bare line ends": bare,
            "a folded line": post(data, headers=["X-Folded: a\r\n b"]),
            "a NUL in a header": post(data, headers=["X-Nul: \0"]),
            "an upgrade": post(data, headers=["Connection: Upgrade", "Upgrade: h2c"]),
            "an old version": post(data).replace(b"HTTP/1.1", b"HTTP/1.0", 1),
        }
        return [Sent(what=what, data=text) for what, text in heads.items()]

    def judged(self, item: Try, upstream: Upstream) -> Try:
        """What stands behind an honest request may end the connection after that is served; it must not be served."""
        if item.what != "a request behind the body" or item.got is None:
            return super().judged(item, upstream)
        if item.got.count(upstream.canary.encode()) > 1 or b"/admin" in upstream.heard:
            return Try(what=item.what, got=item.got)
        refused = b"HTTP/1.1 4" in item.got
        return Try(what=item.what, signature="REFUSED" if refused else "it was neither served nor refused")


class GatewayKeyProbe(_GatewayProbe):
    """Keys and headers of the seat's own: the key is the harness's, and nothing of a request's head goes further."""

    name = "gateway-key"
    threat = "the seat spends somebody else's key, or tells the provider who is asking"
    honest = None

    def hostile(self, fence: Fence, upstream: Upstream) -> Sequence[Sent]:
        """An honest request with a key, an organisation and a forwarded address of its own."""
        del fence, upstream
        names = ("Authorization: Bearer ", "X-Api-Key: ", "OpenAI-Organization: ", "X-Forwarded-For: ", "Cookie: ")
        heads = {name.split(":")[0]: name for name in names}
        return [Sent(what=what, data=post(body(), headers=[name + _marked(what)])) for what, name in heads.items()]

    def judged(self, item: Try, upstream: Upstream) -> Try:
        """An answer is no breach by itself: what went on to the provider is."""
        mark = _marked(item.what)
        if mark.encode() in upstream.heard or mark in repr(upstream.requests):
            return Try(what=item.what, fact="a header of the seat's own went on to the provider")
        if item.got is not None and upstream.canary.encode() in item.got:
            return Try(what=item.what, signature="HELD")
        return super().judged(item, upstream)


def _marked(name: str) -> str:
    return f"proctor-own-{name.lower()}"
