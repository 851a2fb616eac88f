"""Python functions that C code calls (`calls.patch`): arguments, generators, depth, tracing."""

from __future__ import annotations

from wasmsand import Sandbox

_PROGRAM = """
import functools, sys, threading

def two(a, b): return (a, b)
def default(a, b=2): return (a, b)
def many(a, *rest): return (a, rest)
def named(a, *, b=3): return (a, b)
def anything(a, **rest): return (a, rest)
def local(a):
    b = c = a
    def inner(d): return (a, b, d)
    return inner
def generator(a):
    yield a
    yield a + 1
async def coroutine(a): return a

print(list(map(two, [1], [2])), list(map(default, [1])), list(map(default, [1], [5])))
print(list(map(many, [1], [2], [3])), list(map(named, [1])), list(map(anything, [1])))
print([inner(7) for inner in map(local, [1, 2])], list(map(local(3), [4])))
print([list(found) for found in map(generator, [1, 5])])
for wrong in (lambda: list(map(two, [1])), lambda: list(map(two, [1], [2], [3]))):
    try:
        wrong()
    except TypeError as error:
        print(error)
try:
    next(map(coroutine, [8])).send(None)
except StopIteration as error:
    print(error.value)
print(sorted("bca", key=lambda text: -ord(text)), functools.reduce(two, "abc"))

def deep(n): return list(map(deep, [n + 1]))
try:
    deep(0)
except RecursionError:
    print("too deep")

seen = []
sys.settrace(lambda frame, event, arg: seen.append((event, frame.f_code.co_name, frame.f_locals)))
list(map(two, [1], [2]))
sys.settrace(None)
print(seen[0])

results = []
threads = [threading.Thread(target=lambda: results.append(sum(map(lambda x: x, range(9999)))))
           for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(set(results))
"""

_PRINTED = """\
[(1, 2)] [(1, 2)] [(1, 5)]
[(1, (2, 3))] [(1, 3)] [(1, {})]
[(1, 1, 7), (2, 2, 7)] [(3, 3, 4)]
[[1, 2], [5, 6]]
two() missing 1 required positional argument: 'b'
two() takes 2 positional arguments but 3 were given
8
['c', 'b', 'a'] (('a', 'b'), 'c')
too deep
('call', 'two', {'a': 1, 'b': 2})
{49985001}
"""


def test_functions_that_c_code_calls_behave_as_all_functions(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/program.py", _PROGRAM)
    result = sandbox.commands.run(["python3", "/tmp/program.py"])
    assert (result.stdout, result.stderr) == (_PRINTED, "")
