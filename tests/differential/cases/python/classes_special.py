"""Classes: descriptors, metaclasses, operators, context managers, iteration, copying."""

import contextlib
import copy
import weakref


class Typed:
    def __set_name__(self, owner, name):
        self.name = "_" + name

    def __get__(self, instance, owner):
        return self if instance is None else getattr(instance, self.name)

    def __set__(self, instance, value):
        if not isinstance(value, int):
            raise TypeError(f"{self.name[1:]} must be int, not {type(value).__name__}")
        setattr(instance, self.name, value)


class Registry(type):
    known: dict[str, type] = {}

    def __new__(mcls, name, bases, body, **options):
        cls = super().__new__(mcls, name, bases, body)
        mcls.known[options.get("alias", name.lower())] = cls
        return cls


class Vector(metaclass=Registry, alias="vec"):
    x, y = Typed(), Typed()

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)

    def __hash__(self):
        return hash((self.x, self.y))

    def __repr__(self):
        return f"Vector({self.x}, {self.y})"

    def __getattr__(self, name):
        raise AttributeError(f"no {name!r} here")

    def __format__(self, spec):
        return f"<{self.x:{spec}};{self.y:{spec}}>"


v = Vector(1, 2) + 3 * Vector(1, 1)
print(v, f"{v:03d}", v == Vector(4, 5), {v: 1}[Vector(4, 5)], Registry.known)
for act in (lambda: Vector(1, "2"), lambda: v.z, lambda: v + 1, lambda: len(v)):
    try:
        act()
    except Exception as error:
        print(type(error).__name__, error)


@contextlib.contextmanager
def tag(name):
    print(f"<{name}>")
    try:
        yield name.upper()
    except ValueError as error:
        print("handled", error)
    finally:
        print(f"</{name}>")


with tag("a") as a, tag("b"):
    print(a)
    raise ValueError("inside")
with contextlib.ExitStack() as stack, contextlib.suppress(KeyError):
    stack.callback(print, "last")
    {}["missing"]
nested = {"list": [1, [2]]}
deep = copy.deepcopy(nested)
deep["list"][1].append(3)
print(nested, deep)
kept = weakref.ref(v)
del v
print(kept())
print([c.__name__ for c in type("C", (dict, ), {"__slots__": ()}).__mro__], super.__name__)
