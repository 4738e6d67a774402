"""
The one reader of the process environment.

Nothing else in Proctor looks at `os.environ`, so this page is the whole list of what a variable can change.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UsageError

__all__ = [
    "docker_host",
    "docker_runtime",
    "evalplus_override",
    "hub_endpoint",
    "installer_env",
    "lent",
    "ollama_host",
    "secret",
    "state_home",
    "terminal_env",
]


def state_home() -> Path:
    """
    Where images, models and suites are kept between runs: `PROCTOR_HOME`, or the platform's usual place.

    For root that is `/var/lib/proctor`, since an unprivileged sandbox must be able to reach a root file
    system below it and can't pass through `/root`.
    """
    if chosen := os.environ.get("PROCTOR_HOME"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/proctor")
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "proctor"


def ollama_host() -> str:
    """`OLLAMA_HOST`, or Ollama's own default address on this machine."""
    return os.environ.get("OLLAMA_HOST") or "http://127.0.0.1:11434"


def docker_host() -> str | None:
    """`DOCKER_HOST`, or None for the engine's default socket."""
    return os.environ.get("DOCKER_HOST") or None


def docker_runtime() -> str | None:
    """`PROCTOR_DOCKER_RUNTIME`: which of the engine's runtimes runs workspaces, or None for the engine's own choice."""
    return os.environ.get("PROCTOR_DOCKER_RUNTIME") or None


def hub_endpoint() -> str | None:
    """`PROCTOR_MODEL_HUB` or `HF_ENDPOINT`: the address of a model hub, if the user named one."""
    return os.environ.get("PROCTOR_MODEL_HUB") or os.environ.get("HF_ENDPOINT") or None


def evalplus_override(benchmark: str) -> Path | None:
    """EvalPlus's own `HUMANEVAL_OVERRIDE_PATH` or `MBPP_OVERRIDE_PATH`, for `humaneval` or `mbpp`."""
    value = os.environ.get(f"{benchmark.upper()}_OVERRIDE_PATH")
    return Path(value) if value else None


def secret(variable: str) -> str:
    """
    The secret that the environment variable `variable` holds.

    Raises `UsageError` when it is unset or empty. The value must never be put into a workspace, a record or a log.
    """
    value = os.environ.get(variable)
    if not value:
        raise UsageError(f"environment variable {variable!r} is not set: export it, or name another with `key_env`")
    return value


def terminal_env() -> dict[str, str]:
    """The few variables that a helper program of the host's own (never a seat's) gets: PATH and the locale."""
    return {"PATH": os.environ.get("PATH", "/usr/sbin:/usr/bin:/sbin:/bin"), "LC_ALL": "C.UTF-8"}


def installer_env() -> dict[str, str]:
    """
    What pip gets when it fetches packages for an image: as `terminal_env`, and the user's own settings of pip, proxies
    and certificates, which may hold passwords. Nothing of it goes into an image.
    """
    chosen = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR")
    proxies = ("http_proxy", "https_proxy", "no_proxy", "all_proxy")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in chosen or name.startswith("PIP_") or name.lower() in proxies
    }
    return {**terminal_env(), **kept}


@contextmanager
def lent(variable: str, value: str) -> Iterator[None]:
    """
    Put a decoy into the harness's own environment for a while, where its keys stand: what a careless sandbox hands on
    to a seat is then seen by a probe that looks for the decoy. Raises `ValueError` when the variable is taken.
    """
    if variable in os.environ:
        raise ValueError(f"environment variable {variable!r} is set already: a decoy must be a new one")
    os.environ[variable] = value
    try:
        yield
    finally:
        del os.environ[variable]
