"""What an Ollama server says of itself and of one model, read raw: its client leaves out what matters here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field

from harness.canonical import digest_bytes
from harness.errors import ExperimentError, unknown_name
from harness.messages import ModelIdentity, ModelSpec
from harness.models.ollama_wire import Wire, blaming

__all__ = ["Served", "inspect"]

RAW_TEMPLATE = "{{ .Prompt }}"


class _Raw(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Version(_Raw):
    version: str


class _Tag(_Raw):
    name: str
    digest: str = Field(pattern="^(sha256:)?[0-9a-f]{64}$")
    size: int | None = None
    remote_model: str | None = None
    remote_host: str | None = None


class _Tags(_Raw):
    models: tuple[_Tag, ...] = ()


class _Show(_Raw):
    template: str = ""
    parameters: str = ""
    details: dict[str, Any] = Field(default_factory=dict)
    model_info: dict[str, Any] = Field(default_factory=dict)
    capabilities: tuple[str, ...] | None = None
    remote_model: str | None = None
    remote_host: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """One model of a server: its exact tag, what identifies it, and what it can do; None is what was not said."""

    tag: str
    identity: ModelIdentity
    trained_ctx: int | None
    tools: bool | None


async def inspect(wire: Wire, spec: ModelSpec) -> Served:
    """
    The model of `spec` on the server behind `wire`.

    Raises `ExperimentError` when the server does not have it, when it runs elsewhere, and when it has no chat template;
    `ModelServerError` or `RequestRefused` when the server does not answer.
    """
    with blaming(wire):
        version = _Version.model_validate(await _json(wire, "GET", "/api/version")).version
        tags = _Tags.model_validate(await _json(wire, "GET", "/api/tags")).models
    tag = _find(spec, tags)
    with blaming(wire):
        show = _Show.model_validate(await _json(wire, "POST", "/api/show", {"model": tag.name}))
    _refuse_remote(spec, tag, show)
    if show.template.strip() == RAW_TEMPLATE:
        raise ExperimentError(
            f"model {spec.name!r}: {tag.name} has the template {RAW_TEMPLATE}, so a chat would reach it without its "
            "roles: create it again with a TEMPLATE for its family"
        )
    trained_ctx = _trained_ctx(show)
    details = {
        "server": "ollama",
        "version": version,
        "address": wire.address,
        "template_sha256": digest_bytes(show.template.encode()),
        "parameters": show.parameters,
        "trained_ctx": trained_ctx,
        "bytes": tag.size,
        "capabilities": None if show.capabilities is None else list(show.capabilities),
        "format": show.details.get("format"),
        "family": show.details.get("family"),
        "quantization": show.details.get("quantization_level"),
    }
    return Served(
        tag=tag.name,
        identity=ModelIdentity(served=tag.name, digest=tag.digest.removeprefix("sha256:"), details=details),
        trained_ctx=trained_ctx,
        tools=None if show.capabilities is None else "tools" in show.capabilities,
    )


async def _json(wire: Wire, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    response: httpx.Response = await wire.http.request(method, path, json=body)
    response.raise_for_status()
    return response.json()


def _find(spec: ModelSpec, tags: tuple[_Tag, ...]) -> _Tag:
    """The tag that is exactly the model asked for; a name without a tag is `:latest`, as for the server."""
    last = spec.model.rpartition("/")[2]
    wanted = spec.model if ":" in last else f"{spec.model}:latest"
    for tag in tags:
        if tag.name == wanted:
            return tag
    known = unknown_name("Ollama model", wanted, [tag.name for tag in tags])
    raise ExperimentError(f"model {spec.name!r}: {known} Get it with `ollama pull {spec.model}`.")


def _refuse_remote(spec: ModelSpec, tag: _Tag, show: _Show) -> None:
    """A model that the server fetches its answers for from elsewhere has no weights to pin and ignores num_ctx."""
    host = tag.remote_host or show.remote_host
    if host or tag.remote_model or show.remote_model or tag.name.endswith((":cloud", "-cloud")):
        raise ExperimentError(
            f"model {spec.name!r}: {tag.name} runs elsewhere ({host or 'a cloud tag'}), not on this server: name a "
            "model with local weights, or use provider 'openai' with the host's own address"
        )


def _trained_ctx(show: _Show) -> int | None:
    value = show.model_info.get(f"{show.model_info.get('general.architecture')}.context_length")
    return value if isinstance(value, int) and value > 0 else None
