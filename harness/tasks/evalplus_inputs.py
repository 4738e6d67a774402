"""
The arguments of EvalPlus tests as Python values.

EvalPlus keeps its inputs as JSON, which has no tuple, set or complex number. For HumanEval+ that loses nothing; for
MBPP+ the functions under test expect such values, so each task that needs it has a conversion here, by its number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["convert_inputs"]

Convert: TypeAlias = Callable[[list[Any]], Sequence[Any]]
"""Turns the JSON arguments of one call into the arguments proper."""


def _as_set(item: Any) -> Any:
    # The data set's own reading: an empty list stands for an empty dict, whatever else is no list as well.
    return set(item) if isinstance(item, list) and item else {}


def _deep(item: Any) -> Any:
    return tuple(_deep(part) for part in item) if isinstance(item, list) else item


def _tuples(args: list[Any]) -> Sequence[Any]:
    return [tuple(arg) for arg in args]


def _lists_of_tuples(args: list[Any]) -> Sequence[Any]:
    return [[tuple(part) for part in arg] for arg in args]


def _tuples_of_tuples(args: list[Any]) -> Sequence[Any]:
    return [tuple(tuple(part) for part in arg) for arg in args]


def _first_list_of_tuples(args: list[Any]) -> Sequence[Any]:
    return [[tuple(part) for part in args[0]], args[1]]


def _first_tuple(args: list[Any]) -> Sequence[Any]:
    return [tuple(args[0]), *args[1:]]


def _second_tuple(args: list[Any]) -> Sequence[Any]:
    return [args[0], tuple(args[1])]


def _mixed_tuple(args: list[Any]) -> Sequence[Any]:
    return [tuple(tuple(item) if isinstance(item, list) else item for item in args[0])]


def _sets(args: list[Any]) -> Sequence[Any]:
    return [[_as_set(item) for item in args[0]]]


def _dict_of_tuples(args: list[Any]) -> Sequence[Any]:
    return [{key: tuple(value) for key, value in args[0].items()}, *args[1:]]


def _float_and_complex(args: list[Any]) -> Sequence[Any]:
    return [float(args[0]), complex(args[1])]


def _complex(args: list[Any]) -> Sequence[Any]:
    return [complex(args[0])]


def _deep_tuples(args: list[Any]) -> Sequence[Any]:
    return [_deep(arg) for arg in args]


_BY_CONVERSION: tuple[tuple[Convert, tuple[int, ...]], ...] = (
    (
        _tuples,
        (2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424, 429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809),
    ),
    (_lists_of_tuples, (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780)),
    (_first_list_of_tuples, (75, 413, 444, 753)),
    (_second_tuple, (106, 750)),
    (_sets, (115,)),
    (_float_and_complex, (124,)),
    (_first_tuple, (250, 307, 405, 446, 617, 720, 763, 808)),
    (_complex, (252,)),
    (_tuples_of_tuples, (259, 401, 445)),
    (_mixed_tuple, (278,)),
    (_deep_tuples, (580, 615, 791)),
    (_dict_of_tuples, (722,)),
)
_BY_TASK: Mapping[str, Convert] = {f"Mbpp/{number}": convert for convert, ids in _BY_CONVERSION for number in ids}


def convert_inputs(task_id: str, inputs: Sequence[list[Any]]) -> list[list[Any]]:
    """
    The calls of one tier, with the arguments that the function under test expects. Only `Mbpp/N` ids have conversions.

    Raises `ValueError` when the arguments of a call don't have the form that the task's conversion is for.
    """
    convert = _BY_TASK.get(task_id)
    if convert is None:
        return [list(args) for args in inputs]
    converted = []
    for index, args in enumerate(inputs):
        try:
            converted.append(list(convert(args)))
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            raise ValueError(f"{task_id}: the arguments of call {index} can't be converted: {error}") from error
    return converted
