"""From what was asked to the cell's one model and back, with the pinned decoding, whatever the agent asks for."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import anyio

from harness.clock import Clock
from harness.errors import Blamed, ContentRefused, WindowExceeded
from harness.gateway.answers import Answer, made
from harness.gateway.asking import Asked, Refusal
from harness.messages import Decoding, Request
from harness.meter import upper_estimate
from harness.ports import Model
from harness.seeds import SeedBook

__all__ = ["Answering", "Failure"]


class Failure(Exception):  # noqa: N818 - an answer, as `Refusal` is
    """A request that was right and got no answer: the HTTP status it is answered with, and why."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Answering:
    """
    The cell's model as the agent may use it, under the name `name`.

    Of what an agent says of the sampling only a shorter answer counts: fewer tokens, more texts that end it. The seed
    of its n-th call is the n-th of the cell's book.
    """

    def __init__(
        self, model: Model, *, decoding: Decoding, seeds: SeedBook, name: str, answer_s: float, clock: Clock
    ) -> None:
        self.name = name
        self._model = model
        self._decoding = decoding
        self._seeds = seeds
        self._answer_s = answer_s
        self._clock = clock
        self._numbers = count(1)

    def check(self, asked: Asked) -> None:
        """Raises `Refusal` for another model than the cell's."""
        if asked.model != self.name:
            raise Refusal(403, f"the model is {asked.model!r:.100}: expected {self.name!r}, the only one here")

    def number(self) -> int:
        """The number of the next call."""
        return next(self._numbers)

    def prompt_tokens(self, asked: Asked) -> int:
        """At most so many tokens does the prompt have."""
        return upper_estimate(self._request(asked, seed=0)) - self._decoding.num_predict

    async def answer(self, asked: Asked, number: int) -> Answer:
        """
        The model's whole answer, charged and written down. Raises `Refusal` where the model server would not take the
        request as it stands, and `Failure` where there is no answer for another reason.
        """
        request = self._request(asked, seed=self._seeds.seed(number))
        with anyio.move_on_after(self._answer_s):
            try:
                completion = await self._model.complete(request)
            except WindowExceeded as error:
                most = self._decoding.num_ctx
                raise Refusal(
                    400, f"prompt is too long: this model's maximum context length is {most} tokens"
                ) from error
            except ContentRefused as error:
                raise Refusal(400, "the model server refused what the request says") from error
            except Blamed as error:
                raise Failure(502, f"the model server gave no answer: {error.cause}") from error
            return made(completion, request, number=number, model=self.name, clock=self._clock)
        raise Failure(504, f"the model gave no answer in {self._answer_s} seconds")

    def _request(self, asked: Asked, *, seed: int) -> Request:
        pinned = self._decoding
        shorter = pinned.num_predict if asked.most is None else min(pinned.num_predict, asked.most)
        decoding = replace(pinned, num_predict=shorter, stop=tuple(dict.fromkeys((*pinned.stop, *asked.stop))))
        return Request(messages=asked.messages, decoding=decoding, seed=seed, tools=asked.tools)
