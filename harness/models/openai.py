"""Any server with an OpenAI-compatible chat-completions endpoint, over the official client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, field_validator

from harness import environment
from harness.clock import Clock, SystemClock
from harness.errors import (
    Blamed,
    ContentRefused,
    ExperimentError,
    ModelServerError,
    RequestRefused,
    UsageError,
    WindowExceeded,
)
from harness.messages import Completion, ModelIdentity, ModelSpec, Request
from harness.models.address import is_loopback, server_address
from harness.models.blame import bounded, reply_within
from harness.models.chat_wire import is_overflow, read_reply, wire_messages, wire_tools
from harness.models.checks import PromptCounts, check_request
from harness.models.options import read_options
from harness.models.prompt_size import ServerOptions, counted_by, counting
from harness.ports import Model

if TYPE_CHECKING:
    import openai

__all__ = ["OpenAIOptions", "OpenAIProvider"]

KEYLESS = "none"
OWN_KEYS = frozenset(
    {"model", "messages", "tools", "temperature", "top_p", "seed", "stop", "stream", "n"}
    | {"max_tokens", "max_completion_tokens"}
)
CONTENT = frozenset({400, 413, 422})
BUSY = frozenset({408, 409, 425, 429})


class OpenAIOptions(ServerOptions):
    """The options of a model behind a chat-completions endpoint."""

    token_limit: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The key that carries `num_predict`: by default what the address's own API calls it."""

    extra: dict[str, Any] = Field(default_factory=dict)
    """Further keys of the request's body, as the server documents them."""

    @field_validator("extra")
    @classmethod
    def _adds_only(cls, value: dict[str, Any]) -> dict[str, Any]:
        if taken := OWN_KEYS & value.keys():
            raise ValueError(f"`extra` sets {sorted(taken)}, which the request itself sets")
        return value


class OpenAIProvider:
    """
    Models behind an OpenAI-compatible endpoint: `base_url`, or the client's own default address, which needs a key.

    Such a server has no digest to pin, and no way to be told `num_ctx`: the window is the server's own.
    """

    name = "openai"

    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()

    async def identify(self, spec: ModelSpec) -> ModelIdentity:
        """
        The model's name, no digest, and whether the server lists it (None where it lists nothing).

        Raises `ExperimentError` for a specification that is not right, `ModelServerError` when the server does not
        answer and `RequestRefused` when it refuses the key.
        """
        options = read_options(OpenAIOptions, spec)
        async with _client(spec, options) as (client, key):
            listed = await _listed(client, spec.model, key, options.timeout_s)
            details = {"base_url": str(client.base_url), "listed": listed, "client": version("openai")}
        return await counted_by(ModelIdentity(served=spec.model, digest=None, details=details), spec, options)

    @asynccontextmanager
    async def open(self, spec: ModelSpec) -> AsyncIterator[Model]:
        """A model that sends each request once: nothing is retried behind the meter's back."""
        options = read_options(OpenAIOptions, spec)
        async with _client(spec, options) as (client, key):
            model = _OpenAIModel(spec, options, client, key, clock=self._clock)
            async with counting(model, spec, options) as counted:
                yield counted


class _OpenAIModel:
    """One opened model."""

    def __init__(
        self, spec: ModelSpec, options: OpenAIOptions, client: openai.AsyncOpenAI, key: str | None, *, clock: Clock
    ) -> None:
        self._spec = spec
        self._options = options
        self._client = client
        self._key = key
        self._clock = clock
        self._counts = PromptCounts()

    async def complete(self, request: Request) -> Completion:
        """The server's answer. Raises `ModelServerError`, `RequestRefused` or `ContextTruncated`."""
        check_request(request)
        started = self._clock.monotonic()
        body = self._body(request)
        with reply_within(self._options.timeout_s, f"the server at {self._client.base_url}"):
            reply = read_reply(await self._post(body), without=self._key)
        self._counts.check(request, reply.prompt_tokens)
        return Completion(
            text=reply.text,
            stop=reply.stop,
            usage=reply.usage,
            served_model=reply.served_model,
            latency_s=self._clock.monotonic() - started,
            tool_calls=reply.tool_calls,
            details={
                "sent": {key: value for key, value in body.items() if key not in {"messages", "tools"}},
                "refusal": reply.refusal,
            },
        )

    def _body(self, request: Request) -> dict[str, Any]:
        decoding = request.decoding
        default = "max_completion_tokens" if self._spec.base_url is None else "max_tokens"
        body: dict[str, Any] = {
            "model": self._spec.model,
            "messages": wire_messages(request),
            "temperature": decoding.temperature,
            "top_p": decoding.top_p,
            "seed": request.seed,
            self._options.token_limit or default: decoding.num_predict,
        }
        if decoding.stop:
            body["stop"] = list(decoding.stop)
        if request.tools:
            body["tools"] = wire_tools(request)
        return {**body, **self._options.extra}

    async def _post(self, body: dict[str, Any]) -> bytes:
        import openai

        known = {key: value for key, value in body.items() if key not in self._options.extra}
        failure: Blamed
        try:
            raw = await self._client.chat.completions.with_raw_response.create(
                **known, stream=False, extra_body=self._options.extra or None
            )
            return bytes(raw.http_response.content)
        except openai.OpenAIError as error:
            failure = _blame(error, self._key)
        # Raised out here, so that no error of the client's, which holds the key, hangs on to this one.
        raise failure


@asynccontextmanager
async def _client(spec: ModelSpec, options: OpenAIOptions) -> AsyncIterator[tuple[openai.AsyncOpenAI, str | None]]:
    """The client of a specification, and the key it uses, if any."""
    try:
        import openai
    except ImportError as error:
        raise UsageError("provider 'openai' needs its client: pip install \"proctor[openai]\"") from error
    if spec.base_url is None and spec.key_env is None:
        raise ExperimentError(
            f"model {spec.name!r}: expected a `base_url`, or a `key_env` for the client's own address"
        )
    address = server_address(spec, spec.base_url) if spec.base_url is not None else None
    key = environment.secret(spec.key_env) if spec.key_env is not None else None
    # An organisation or project set for the client's own API is nobody else's business.
    withheld: dict[str, Any] = {"OpenAI-Organization": openai.Omit(), "OpenAI-Project": openai.Omit()}
    transport = openai.DefaultAsyncHttpxClient(
        # Plain HTTP has no certificate to check, and to load those takes longer than many an answer.
        verify=address is None or not address.startswith("http://"),
        trust_env=address is None or not is_loopback(address),
        follow_redirects=False,
    )
    async with openai.AsyncOpenAI(
        api_key=key or KEYLESS,
        base_url=address,
        max_retries=0,
        timeout=options.timeout_s,
        default_headers=withheld if address is not None else None,
        http_client=transport,
    ) as client:
        yield client, key


async def _listed(client: openai.AsyncOpenAI, model: str, key: str | None, timeout_s: float) -> bool | None:
    """Whether the server lists `model`; None for a server that has no list."""
    import openai

    failure: Blamed
    try:
        with reply_within(timeout_s, f"the server at {client.base_url}"):
            page = await client.models.list()
        return any(item.id == model for item in page.data or ())
    except openai.APIStatusError as error:
        if error.status_code in {404, 405, 501}:
            return None
        failure = _blame(error, key)
    except (openai.OpenAIError, AttributeError, TypeError, ValueError) as error:
        # The client does not check what a list holds, so what is no list fails in any of these ways.
        failure = _blame(error, key)
    raise failure


def _blame(error: Exception, key: str | None) -> Blamed:
    """The error of ours that says whose failure `error` is, with the server's own words and never the key."""
    import openai

    words = bounded(error, without=key)
    if isinstance(error, openai.APIStatusError):
        words = bounded(error.response.text.strip() or error, without=key)
        code, kind = getattr(error, "code", None), getattr(error, "type", None)
        if is_overflow(code, kind, words):
            return WindowExceeded(f"the server refused a prompt that does not fit its window: {words}")
        if error.status_code in CONTENT:
            return ContentRefused(f"the server refused the request (status {error.status_code}): {words}")
        if 400 <= error.status_code < 500 and error.status_code not in BUSY:
            return RequestRefused(f"the server refused the request (status {error.status_code}): {words}")
        return ModelServerError(f"the server failed (status {error.status_code}): {words}")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        return ModelServerError(f"the server can't be reached: {words} {bounded(cause or '', without=key)}".strip())
    return ModelServerError(f"the server answered something that is no answer: {type(error).__name__}: {words}")
