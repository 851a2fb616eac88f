"""Code full of types: generics, protocols, overloads, typed dicts, aliases, pattern matching."""

from __future__ import annotations

import typing as t
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, Flag, StrEnum, auto

type Tree[T] = T | list[Tree[T]]


class Color(StrEnum):
    RED = auto()
    GREEN = auto()


class Access(Flag):
    READ = auto()
    WRITE = auto()
    BOTH = READ | WRITE


class Movie(t.TypedDict, total=False):
    name: t.Required[str]
    year: int


@t.runtime_checkable
class Sized(t.Protocol):
    def __len__(self) -> int: ...


class Stack[T]:
    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items = list(items)

    def push(self, item: T) -> t.Self:
        self._items.append(item)
        return self

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        return reversed(self._items)


class Shape(ABC):
    @abstractmethod
    def area(self) -> float: ...


def flatten[T](tree: Tree[T]) -> Iterator[T]:
    match tree:
        case list(children):
            for child in children:
                yield from flatten(child)
        case leaf:
            yield leaf


def describe(value: object) -> str:
    match value:
        case {"kind": "point", "x": int(x), **rest}:
            return f"point {x} {sorted(rest)}"
        case [first, *_, last] if first == last:
            return "same ends"
        case Color.RED | Color.GREEN:
            return "color"
        case str() | bytes():
            return "text"
        case _:
            return type(value).__name__


print(list(flatten([1, [2, [3, []], 4]])), isinstance(Stack(), Sized), list(Stack("ab").push("c")))
print(Color.RED, Color("green"), Access.BOTH, Access.READ in Access.BOTH, ~Access.READ)
print([describe(v) for v in ({"kind": "point", "x": 1, "y": 2}, [1, 2, 1], Color.RED, "s", 3.5)])
print(t.get_type_hints(Movie), Movie.__required_keys__, t.get_args(Callable[[int], str]))
print(t.get_origin(Mapping[str, int]), Stack[int], t.Literal["a", "b"], int | None)
try:
    Shape()  # type: ignore[abstract]
except TypeError as error:
    print(error)
print(flatten.__type_params__, Tree.__value__)
