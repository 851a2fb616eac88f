"""Dataclasses: defaults, order, frozen, replace, slots, conversion."""

from dataclasses import FrozenInstanceError, asdict, astuple, dataclass, field, fields, replace
from typing import ClassVar


@dataclass(order=True)
class Item:
    sort_index: float = field(init=False, repr=False)
    name: str
    price: float = 0.0
    tags: list[str] = field(default_factory=list, compare=False)
    count: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.sort_index = -self.price
        type(self).count += 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    x: int
    y: int = 0


items = [Item("pen", 1.5, ["blue"]), Item("cup", 7.25), Item("book", 12)]
print(sorted(items), Item.count, items[0] == Item("pen", 1.5))
print(asdict(items[0]), astuple(Point(x=1)), replace(Point(x=1), y=5), hash(Point(x=1)) == hash(Point(x=1)))
print([f.name for f in fields(Point)])
try:
    Point(x=1).x = 2  # type: ignore[misc]
except FrozenInstanceError as error:
    print(type(error).__name__, error)
try:
    Point(1)  # type: ignore[misc]
except TypeError as error:
    print(error)
