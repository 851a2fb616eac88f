"""cProfile, trace, pdb with commands, tracemalloc, faulthandler, doctest."""

import cProfile
import doctest
import io
import pdb
import pstats
import sys
import tracemalloc


def work(n):
    """Adds up.

    >>> work(4)
    6
    >>> work("x")
    Traceback (most recent call last):
    TypeError: 'str' object cannot be interpreted as an integer
    """
    return sum(helper(i) for i in range(n))


def helper(i):
    return i


profile = cProfile.Profile()
profile.runcall(work, 100)
out = io.StringIO()
pstats.Stats(profile, stream=out).sort_stats("ncalls").print_stats("helper")
print([line.split()[0] for line in out.getvalue().splitlines() if "helper" in line and "program.py" in line])
print(doctest.testmod())
tracemalloc.start()
kept = [bytes(1000) for _ in range(100)]
print(tracemalloc.get_traced_memory()[0] > 100_000)
tracemalloc.stop()
commands = io.StringIO("p n\nnext\ncontinue\n")
debugger = pdb.Pdb(stdin=commands, stdout=sys.stdout, nosigint=True, readrc=False)
debugger.use_rawinput = False
debugger.runcall(work, 3)
seen = []
sys.settrace(lambda frame, event, argument: seen.append((event, frame.f_code.co_name)))
helper(1)
sys.settrace(None)
print(seen[:2])
