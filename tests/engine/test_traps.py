"""Guests that break a rule of WebAssembly."""

from __future__ import annotations

import pytest

from tests.engine.guests import program
from tests.engine.hosts import Host
from wasmsand.engine.protocol import GuestTrap, TrapKind

TABLE = "(table 4 funcref) (elem (i32.const 1) $takes) (func $takes (param i32)) (tag $oops)"

FAULTS = [
    ("(drop (i32.load (i32.const 0x7fffffff)))", TrapKind.MEMORY),
    ("(i32.store (i32.const -4) (i32.const 1))", TrapKind.MEMORY),
    ("(memory.fill (i32.const 131000) (i32.const 0) (i32.const 1000))", TrapKind.MEMORY),
    ("(drop (i32.div_s (i32.const 1) (i32.const 0)))", TrapKind.ARITHMETIC),
    ("(drop (i32.div_s (i32.const 0x80000000) (i32.const -1)))", TrapKind.ARITHMETIC),
    ("(drop (i32.trunc_f32_s (f32.const nan)))", TrapKind.ARITHMETIC),
    ("unreachable", TrapKind.UNREACHABLE),
    ("(call_indirect (type $none) (i32.const 1))", TrapKind.INDIRECT_CALL),
    ("(call_indirect (type $none) (i32.const 2))", TrapKind.INDIRECT_CALL),
    ("(call_indirect (type $none) (i32.const 99))", TrapKind.INDIRECT_CALL),
    ("(call_ref $none (ref.null $none))", TrapKind.INDIRECT_CALL),
    ("(throw $oops)", TrapKind.UNCAUGHT_EXCEPTION),
    ("(call $start)", TrapKind.STACK),
]


@pytest.mark.parametrize(("start", "kind"), FAULTS, ids=[start for start, _ in FAULTS])
def test_a_fault_is_a_trap_of_its_kind(host: Host, start: str, kind: TrapKind) -> None:
    raised = host.run_wat(program(start, more=TABLE))
    assert isinstance(raised, GuestTrap)
    assert raised.kind is kind
    assert str(raised)


def test_a_caught_exception_is_not_a_trap(host: Host) -> None:
    start = "(block $caught (try_table (catch $oops $caught) (throw $oops)))"
    assert host.run_wat(program(start, more=TABLE)) is None
