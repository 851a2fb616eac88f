"""The cost of threads in a guest: `python -m bench.threads`.

The programs are small, in WebAssembly text, and make the calls that the libc makes. Rules: as in
`bench.calls`, a cost is the difference between 2N repetitions and N, and times are CPU time of
this whole process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.calls import Bench
from bench.report import duration
from tests.machine.guests import do
from wasmsand.abi.linux.numbers import CallNumber

_TURNS = 300
_GONE, _STACK = 1024, 32768
_FLAGS = 0x10000 | 0x800 | 0x400 | 0x200 | 0x100 | 0x100000 | 0x200000
"""The flags of a thread; the kernel writes its ID to a word, and clears the word at its end."""
_CLONE, _EXIT, _YIELD, _FUTEX = (
    CallNumber.CLONE,
    CallNumber.EXIT,
    CallNumber.SCHED_YIELD,
    CallNumber.FUTEX_TIME64,
)


def _repeated(body: str, turns: int) -> str:
    return f"""(local.set $i (i32.const 0)) (loop $again {body}
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const {turns}))))"""


_CREATE = do(_CLONE, _FLAGS, _STACK, _GONE, 0, _GONE)
_JOIN = f"""(block $gone (loop $wait (br_if $gone (i32.eqz (i32.load (i32.const {_GONE}))))
  {do(_FUTEX, _GONE, 0, f"(i32.load (i32.const {_GONE}))")} (br $wait)))"""


def _module(start: str, thread: str) -> str:
    return f"""(module
      (import "linux" "syscall" (func $syscall (param i32 i32 i32 i32 i32 i32 i32) (result i32)))
      (memory (export "memory") 2)
      (global (export "__stack_pointer") (mut i32) (i32.const 512))
      (func (export "__thread_start") (param i32) (local $i i32) {thread} {do(_EXIT, 0)})
      (func (export "_start") (local $i i32) {start}))"""


def programs(turns: int) -> dict[str, str]:
    """The programs to measure, each of which repeats its action `turns` times."""
    yields = _repeated(do(_YIELD), turns)
    return {
        "create a thread and wait for its end": _module(_repeated(_CREATE + _JOIN, turns), ""),
        "pass the turn to another thread and get it back": _module(
            _CREATE + yields + _JOIN, yields
        ),
    }


def measure(rounds: int) -> dict[str, float]:
    """Seconds of one repetition, by action."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        for times in (1, 2):
            for number, wat in enumerate(programs(times * _TURNS).values()):
                bench.add(f"{number}-{times}", wat)
        costs = {}
        for number, name in enumerate(programs(1)):
            once, twice = (
                statistics.median(
                    bench.seconds(f"{number}-{times}", "/dev/zero", "/dev/null")
                    for _ in range(rounds + 1)
                )
                for times in (1, 2)
            )
            costs[name] = (twice - once) / _TURNS
        return costs


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="bench.threads", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="print the median of this many runs")
    chosen = parser.parse_args(arguments)
    for name, seconds in measure(chosen.rounds).items():
        print(f"{duration(seconds):>10}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
