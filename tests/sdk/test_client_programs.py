"""Programs that a client of a server drives itself: their captures are bounded."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox, StateError
from wasmsand.sdk.client_programs import (
    CAPTURES_MAX,
    Captures,
    backend_of,
    snapshot_with,
    take_programs,
)


def test_a_captured_program_is_in_the_next_copy_that_names_it() -> None:
    with Sandbox() as sandbox:
        session = sandbox.python()
        session.run("x = 7")
        captures = Captures(sandbox.options.memory_limit_bytes)
        process = session._conversation.process
        captures.capture(backend_of(sandbox), "mine", process)
        session.close()
        (program,) = captures.take(["mine", "mine"])
        with pytest.raises(StateError, match="mine was not captured"):
            captures.take(["mine"])
        with Sandbox.from_snapshot(snapshot_with(sandbox, programs=[program])) as copy:
            programs = take_programs(copy)
            assert [*programs] == ["mine"]
            assert programs["mine"].pid == process.pid
            assert copy.sessions == []
            assert take_programs(copy) == {}
            programs["mine"].kill()


def test_captures_of_ended_programs_do_not_pile_up() -> None:
    with Sandbox() as sandbox:
        captures, backend = Captures(20_000_000), backend_of(sandbox)
        with pytest.raises(StateError, match="captured commands would hold"):
            for number in range(CAPTURES_MAX):
                with sandbox.python() as session:
                    session.run("x = 1")
                    captures.capture(backend, str(number), session._conversation.process)
        captures.drop_all()
        with sandbox.python() as session:
            for _ in range(2 * CAPTURES_MAX):  # one command has one capture
                captures.capture(backend, "same", session._conversation.process)
            many = Captures(1 << 40)
            with pytest.raises(StateError, match=f"{CAPTURES_MAX} commands are captured already"):
                for number in range(CAPTURES_MAX + 1):
                    many.arm(backend, str(number), session._conversation.process)
            many.drop_all()


def test_a_capture_that_nobody_began_is_not_finished() -> None:
    with Sandbox() as sandbox, sandbox.shell() as shell:
        captures, process = Captures(1 << 30), shell._conversation.process
        with pytest.raises(StateError, match="nobody has begun"):
            captures.finish(backend_of(sandbox), "a", process)
        captures.arm(backend_of(sandbox), "a", process)
        with pytest.raises(StateError, match="it did not fork"):
            captures.finish(backend_of(sandbox), "a", process)
