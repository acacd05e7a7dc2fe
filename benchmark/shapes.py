"""What is read back must have the shape that was written: types as the description of a shape.

A shape is a type: numbers, texts, lists, dictionaries with text keys, unions, literals, TypedDicts
and dataclasses. Numbers are finite. What does not fit is named by its place, as in
"scores.test.balanced_accuracy is 'high', expected a number".
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import (
    Any,
    Literal,
    NoReturn,
    NotRequired,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

T = TypeVar("T")
Reader = Callable[[Any], Any]

LARGEST = {int: 2**63, float: 1e100}
"""No number beyond these is a result of anything here, and arithmetic with it, such as the squares of a
standard deviation, would raise."""


class Misshapen(ValueError):
    """The value is not of the expected shape; the message names the place."""

    def __init__(self, problem: str, place: str = "") -> None:
        super().__init__(f"{place} {problem}" if place else f"it {problem}")
        self.problem, self.place = problem, place

    def inside(self, name: object) -> Misshapen:
        """The same, told of what holds it."""
        return Misshapen(self.problem, f"{name}.{self.place}" if self.place else str(name))


def parse(content: bytes) -> Any:
    """JSON text with finite numbers only; Misshapen says what else it is."""
    try:
        value = _DECODER.decode(content.decode("utf-8"))
        if _may_overflow(content):
            json.dumps(value, allow_nan=False)
        return value
    except RecursionError:
        raise Misshapen("is nested too deeply") from None
    except ValueError as error:  # also text that is not UTF-8, and integers of thousands of digits
        raise Misshapen(f"is not JSON ({error}); it may have been cut off or edited") from error


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a finite number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_LARGE_EXPONENT = re.compile(rb"[eE]\+?\d{3,}[\s,\]}]")


def _may_overflow(content: bytes) -> bool:
    """Whether a number may be infinite: by its exponent, or by hundreds of digits, which fill at
    least one of these blocks. Nearly no file has one, and asking every number takes longer."""
    blocks = range(0, len(content), 100)
    return bool(_LARGE_EXPONENT.search(content)) or any(
        content[i : i + 100].isdigit() for i in blocks
    )


def fit(shape: type[T], value: Any) -> T:
    """The value, if it has the shape; dataclasses are made from their fields. Else Misshapen."""
    read: Callable[[Any], T] = _reader(shape)  # type: ignore[arg-type]
    return read(value)


@cache
def _reader(shape: Any) -> Reader:
    """A function that gives a value of the shape back, and raises on any other."""
    origin, arguments = get_origin(shape), get_args(shape)
    if shape is Any:
        return lambda value: value
    if origin in (Union, types.UnionType):
        return _any_of(shape)
    if origin is Literal:
        return _one_of(arguments)
    if origin is list:
        return _list(_reader(arguments[0]))
    if origin is dict:
        return _dict(_reader(arguments[1]))
    if is_typeddict(shape):
        return _typed(shape)
    if is_dataclass(shape):
        return _made(shape)
    return _plain(shape)


def _types(shape: Any) -> tuple[type, ...]:
    """The types that a value of the shape can have when it comes from JSON or TOML."""
    if is_typeddict(shape) or is_dataclass(shape):
        return (dict,)
    # A bool is an int to Python, and not a number to anybody else.
    return (int, float) if shape is float else (get_origin(shape) or shape,)


WORDS = {float: "a number", int: "a whole number", str: "a text", bool: "true or false",
         types.NoneType: "nothing", list: "a list", dict: "a table"}  # fmt: skip


def expected(shape: Any) -> str:
    """The shape in words."""
    if get_origin(shape) in (Union, types.UnionType):
        return " or ".join(expected(one) for one in get_args(shape))
    if get_origin(shape) is Literal:
        return f"one of {', '.join(map(repr, get_args(shape)))}"
    plain = dict if is_typeddict(shape) or is_dataclass(shape) else get_origin(shape) or shape
    return WORDS.get(plain, str(plain))


def _wrong(value: Any, wanted: str) -> NoReturn:
    try:
        shown = repr(value)
    except (ValueError, RecursionError):
        shown = f"a {type(value).__name__}"  # an integer of thousands of digits, or deep nesting
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    raise Misshapen(f"is {shown}, expected {wanted}")


def _plain(shape: Any) -> Reader:
    accepted, most = _types(shape), LARGEST.get(shape)

    def read(value: Any) -> Any:
        if type(value) not in accepted:
            _wrong(value, expected(shape))
        if most is not None and not -most <= value <= most:
            _wrong(value, f"{expected(shape)} up to {most:.0e}")
        return value

    return read


def _one_of(values: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) not in map(type, values) or value not in values:
            _wrong(value, expected(Literal[values]))
        return value

    return read


def _any_of(shape: Any) -> Reader:
    # No two members of a union here share a type, so the value's own says which one is meant.
    readers = {kind: _reader(one) for one in get_args(shape) for kind in _types(one)}

    def read(value: Any) -> Any:
        reader = readers.get(type(value))
        return _wrong(value, expected(shape)) if reader is None else reader(value)

    return read


def _list(item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not list:
            _wrong(value, "a list")
        made = []
        try:
            for one in value:
                made.append(item(one))
        except Misshapen as error:
            raise error.inside(len(made)) from None
        return made

    return read


def _dict(item: Reader) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            _wrong(value, "a table")
        made, name = {}, ""
        try:
            for name, one in value.items():
                made[name] = item(one)
        except Misshapen as error:
            raise error.inside(name) from None
        return made

    return read


def _typed(shape: Any) -> Reader:
    """A TypedDict; more fields than it names are allowed, so that later versions may add some."""
    # Asked here, because __required_keys__ does not see through annotations that are texts.
    hints = get_type_hints(shape, include_extras=True)
    optional = {name for name, kind in hints.items() if get_origin(kind) is NotRequired}
    required = set(hints) - optional if shape.__total__ else set()
    return _fields(
        {n: _reader(get_args(kind)[0] if n in optional else kind) for n, kind in hints.items()},
        required,
    )


def _made(shape: Any) -> Reader:
    """A dataclass, with just its fields."""
    hints = get_type_hints(shape)
    known = fields(shape)
    required = {f.name for f in known if f.default is MISSING and f.default_factory is MISSING}
    read = _fields({f.name: _reader(hints[f.name]) for f in known}, required)

    def make(value: Any) -> Any:
        found = read(value)
        for name in found.keys() - hints.keys():
            raise Misshapen(f"is not a field; there are {', '.join(hints)}", str(name))
        return shape(**found)

    return make


def _fields(readers: Mapping[str, Reader], required: AbstractSet[str]) -> Reader:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            _wrong(value, "a table")
        if not required <= value.keys():
            raise Misshapen("is missing", min(required - value.keys()))
        made, name = dict(value), ""
        try:
            for name, one in value.items():
                if name in readers:
                    made[name] = readers[name](one)
        except Misshapen as error:
            raise error.inside(name) from None
        return made

    return read
