"""The seat that runs an agent program of somebody else's, which reaches its one model through the gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from harness.canonical import digest_bytes
from harness.errors import SeatError, WorkspaceError
from harness.gateway.serve import Gateway, serve_gateway
from harness.seats import command_options, options
from harness.seats.bounded import shown_bytes
from harness.seats.desk import Desk
from harness.seats.placeholders import filled
from harness.seats.showing import prompt, round_view
from harness.tree import Tree
from harness.values import Declared
from harness.walls import GATEWAY_PORT, ExecResult

__all__ = ["HOME", "NO_KEY", "WIRES", "CommandSeat", "WireEnds"]

HOME = "/tmp/home"  # noqa: S108 - a path inside the workspace, whose /tmp is its own
"""The program's home folder: its files are laid there, outside of what is judged."""

NO_KEY = "the-gateway-needs-no-key"
"""What stands where a program insists on a key. The real one, if there is any, never leaves the harness."""

_ADDRESS = f"http://127.0.0.1:{GATEWAY_PORT}"
_WORD_BYTES = (128 << 10) - 1
_LAY = 'mkdir -p -m 700 -- "$0" && tar -xf - -C "$0"'
_TRY = f'command -v -- "$1" >/dev/null || exit 127; {_LAY}'
_RUN = f'{_LAY} && exec "$@" </dev/null'
_MISSING = 127


@dataclass(frozen=True, kw_only=True, slots=True)
class WireEnds:
    """How programs of a wire are told of the gateway: what ends its base URL, and the variables that hold it."""

    path: str
    address_variables: tuple[str, ...]
    key_variables: tuple[str, ...] = ()


WIRES: Mapping[str, WireEnds] = {
    "anthropic": WireEnds(path="", address_variables=("ANTHROPIC_BASE_URL",), key_variables=("ANTHROPIC_API_KEY",)),
    "ollama": WireEnds(path="", address_variables=("OLLAMA_HOST", "OLLAMA_API_BASE")),
    "openai": WireEnds(
        path="/v1", address_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"), key_variables=("OPENAI_API_KEY",)
    ),
}
"""The wires that a program may speak."""


class CommandSeat:
    """
    Runs the program `argv` in `/workspace` until it ends by itself, and serves it the cell's model over one `wire`.

    Words of `argv`, values of `environment` and texts of `files` may hold placeholders: `{seat.model}`,
    `{seat.base_url}`, `{seat.address}`, `{seat.home}`, `{seat.instruction_file}`, and in words `{seat.instruction}`
    too. `instruction_file` and the names of `files` are paths below the program's home. `key_variables` are further
    variables that a program takes a key from; there is none. `timeout_s` is in seconds; `output_bytes` is what is kept
    of either output; `success_statuses` are told apart from others in the note, and nowhere else. Raises `PluginError`
    for an option that can't be used.
    """

    name = "command"
    needs_gateway = True

    def __init__(
        self,
        *,
        argv: Sequence[str],
        wire: str = "openai",
        model_name: str = "proctor-model",
        instruction_file: str = "instruction.md",
        files: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        key_variables: Sequence[str] = (),
        timeout_s: float = 3600.0,
        output_bytes: int = 1 << 20,
        success_statuses: Sequence[int] = (0,),
    ) -> None:
        self.argv = command_options.words(argv)
        (self.wire,) = options.names(self.name, "wire", [wire], known=WIRES)
        self.model_name = command_options.model_name(model_name)
        self.instruction_file = options.file_path(self.name, "instruction_file", instruction_file)
        self.files = command_options.files({} if files is None else files, taken=self.instruction_file)
        self.environment = command_options.environment({} if environment is None else environment)
        self.key_variables = command_options.key_variables(key_variables)
        self.timeout_s = options.seconds(self.name, "timeout_s", timeout_s, high=7 * 86400)
        self.output_bytes = options.whole(self.name, "output_bytes", output_bytes, low=256, high=64 << 20)
        self.success_statuses = command_options.statuses(success_statuses)

    def options(self) -> Mapping[str, Any]:
        """The options as a registration pins them."""
        return {
            "argv": list(self.argv),
            "wire": self.wire,
            "model_name": self.model_name,
            "instruction_file": self.instruction_file,
            "files": dict(self.files),
            "environment": dict(self.environment),
            "key_variables": list(self.key_variables),
            "timeout_s": self.timeout_s,
            "output_bytes": self.output_bytes,
            "success_statuses": list(self.success_statuses),
        }

    async def sit(self, desk: Desk) -> Declared:
        """Run the program at `desk`."""
        return await _Sitting(self, desk).through()


class _Sitting:
    """One cell's program, from its files to its end."""

    def __init__(self, seat: CommandSeat, desk: Desk) -> None:
        self._seat = seat
        self._desk = desk
        self._values = {
            "address": _ADDRESS,
            "base_url": _ADDRESS + WIRES[seat.wire].path,
            "home": HOME,
            "instruction_file": f"{HOME}/{seat.instruction_file}",
            "model": seat.model_name,
        }

    async def through(self) -> Declared:
        """Try whether it can be started at all, serve the gateway, run the program, end what it left running."""
        seat, desk, folder = self._seat, self._desk, self._desk.workspace.gateway
        if folder is None:
            raise SeatError('the workspace has no gateway: a command seat needs [fence] network = "gateway"')
        wires = tuple(wire for wire in desk.gateway.wires if wire == seat.wire)
        if not wires:
            raise SeatError(f"the fence's gateway speaks {', '.join(desk.gateway.wires)}, and the seat {seat.wire!r}")
        text = prompt(desk, round_view(desk))
        argv, home = self._argv(text), self._home(text)
        await self._try(home)
        try:
            async with serve_gateway(
                folder,
                rules=replace(desk.gateway, wires=wires),
                model=desk.model,
                decoding=desk.decoding,
                seeds=desk.seeds,
                name=seat.model_name,
                event=desk.transcript.add,
            ) as gateway:
                result = await self._run(argv, home, gateway)
        except OSError as error:
            raise WorkspaceError(f"the gateway's socket can't be made in {folder}: {error}") from error
        return Declared(note=self._note(result))

    def _argv(self, text: str) -> list[str]:
        argv = [filled(word, {**self._values, "instruction": text}) for word in self._seat.argv]
        for word in argv:
            if "\0" in word or len(word.encode()) > _WORD_BYTES:
                what = "NUL" if "\0" in word else f"{len(word.encode())} bytes"
                raise SeatError(
                    f"the prompt can't be a word of a command, since the word would have {what}: expected at most "
                    f"{_WORD_BYTES} bytes and no NUL. Let the program read {{seat.instruction_file}} instead"
                )
        return argv

    def _home(self, text: str) -> Tree:
        """What is in the program's home when it starts; told to the transcript."""
        files = {name: filled(content, self._values) for name, content in self._seat.files.items()}
        self._desk.transcript.add(
            "laid",
            prompt=text,
            prompt_sha256=digest_bytes(text.encode()),
            instruction_file=self._values["instruction_file"],
            files={f"{HOME}/{name}": digest_bytes(content.encode()) for name, content in files.items()},
        )
        return Tree.of({**files, self._seat.instruction_file: text})

    async def _try(self, home: Tree) -> None:
        """
        Look for the program and lay its home once, since any status of the program's own run may be its own: what is
        missing in the image, or does not fit, must be known before.
        """
        program = self._seat.argv[0]
        tried = await self._desk.workspace.exec(
            ["sh", "-c", _TRY, HOME, program], stdin=home.to_tar(), output_bytes=4096
        )
        if tried.status == _MISSING:
            raise SeatError(
                f"the image has no program {program!r} that can be run: name an image that has it, such as one that "
                "`proctor image build --python-package NAME` makes"
            )
        if tried.status != 0:
            why = tried.stderr.decode("utf-8", "replace").strip() or f"status {tried.status}"
            raise SeatError(f"the program's files can't be laid in {HOME}: {why}")

    def _environment(self) -> dict[str, str]:
        ends = WIRES[self._seat.wire]
        keys = dict.fromkeys((*ends.key_variables, *self._seat.key_variables), NO_KEY)
        address = dict.fromkeys(ends.address_variables, self._values["base_url"])
        chosen = {name: filled(value, self._values) for name, value in self._seat.environment.items()}
        return {"HOME": HOME, "PYTHONDONTWRITEBYTECODE": "1", **address, **keys, **chosen}

    async def _run(self, argv: Sequence[str], home: Tree, gateway: Gateway) -> ExecResult:
        """
        Lay its home (a workspace's /tmp may be new for each program), run it, end what it left running. Its event is
        written however it ends, by a limit's cancellation too.
        """
        result: ExecResult | None = None
        left: int | None = None
        try:
            result = await self._desk.workspace.exec(
                ["sh", "-c", _RUN, HOME, *argv],
                stdin=home.to_tar(),
                timeout_s=self._seat.timeout_s,
                output_bytes=self._seat.output_bytes,
                env=self._environment(),
            )
            left = await self._desk.workspace.sweep()
        finally:
            self._tell(result, left, gateway)
        if result.status is None and not result.timed_out:
            raise WorkspaceError(f"how the agent's program {self._seat.argv[0]!r} ended is not known")
        return result

    def _tell(self, result: ExecResult | None, left: int | None, gateway: Gateway) -> None:
        most = self._seat.output_bytes
        output, errors = (b"", b"") if result is None else (result.stdout, result.stderr)
        ending = {"status": None, "timed_out": False, "seconds": None, "stdout_cut": False, "stderr_cut": False}
        if result is not None:
            facts = asdict(result)
            ending = {key: facts[key] for key in ending}
        self._desk.transcript.add(
            "program",
            argv=list(self._seat.argv),
            stopped=result is None,
            **ending,
            stdout=shown_bytes(output, most)[0],
            stderr=shown_bytes(errors, most)[0],
            left_running=left,
            gateway={"served": gateway.served, "refused": gateway.refused, "failed": gateway.failed},
        )

    def _note(self, result: ExecResult) -> str:
        program = self._seat.argv[0]
        if result.timed_out:
            return f"{program} was ended after {self._seat.timeout_s:g} s, its timeout_s"
        good = self._seat.success_statuses
        expected = "" if result.status in good else f", expected {' or '.join(map(str, good))}"
        return f"{program} ended with exit status {result.status}{expected}"
