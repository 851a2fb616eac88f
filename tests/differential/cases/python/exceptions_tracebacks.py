"""Exceptions: chains, groups, notes, finally, warnings, and how tracebacks are printed."""

import sys
import traceback
import warnings


class AppError(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


def inner():
    return {}["key"]


def outer():
    try:
        inner()
    except KeyError as error:
        raise AppError(17, "lookup failed") from error


try:
    outer()
except AppError as error:
    error.add_note("while testing")
    traceback.print_exc(file=sys.stdout)
    print(error.code, error.__cause__.args, [f.name for f in traceback.extract_tb(error.__traceback__)])
try:
    raise ExceptionGroup("several", [ValueError(1), ExceptionGroup("more", [TypeError("t")])])
except* ValueError as group:
    print("values", group.exceptions)
except* TypeError as group:
    traceback.print_exception(group, file=sys.stdout)


def order():
    try:
        return "try"
    finally:
        print("finally first")


print(order())
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn("old", DeprecationWarning, stacklevel=1)
print(caught[0].category.__name__, caught[0].message)
for bad in ("1 +", "def f(:", "x = 'abc", "for in y: pass", "  indented"):
    try:
        compile(bad, "<test>", "exec")
    except SyntaxError as error:
        print(type(error).__name__, error.msg, error.lineno, error.offset)
print("and the end", flush=True)
numbers = [1, 2, 3]
result = numbers[0] + numbers[10]
