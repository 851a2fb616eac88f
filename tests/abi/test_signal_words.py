"""Signal words in a program's memory: the same effects as with a mask and actions in the kernel,
and no harm from what a hostile program writes there."""

from __future__ import annotations

import random

import pytest

from wasmsand.abi.linux.signal_words import COUNT, SIZE, SignalWords
from wasmsand.abi.memory import GuestMemory
from wasmsand.kernel.process.signals import (
    SA_RESETHAND,
    SIG_IGN,
    UNBLOCKABLE,
    Signal,
    SignalAction,
    SignalInfo,
    SignalState,
)

_SIGNALS = (1, 2, 10, 12, 17, 20, 33, 64)


class _Memory:
    """A memory that can be viewed or only copied."""

    def __init__(self, content: bytes, *, viewed: bool) -> None:
        self._bytes = bytearray(bytes(64) + content)
        self._viewed = viewed

    def memory_size(self) -> int:
        return len(self._bytes)

    def memory_view(self) -> memoryview | None:
        return memoryview(self._bytes) if self._viewed else None

    def read(self, address: int, count: int) -> bytes:
        return bytes(self._bytes[address : address + count])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._bytes[address : address + len(data)] = data


def _words(content: bytes = bytes(SIZE), *, viewed: bool = True) -> SignalWords:
    return SignalWords(GuestMemory.of(_Memory(content, viewed=viewed)).words(64, COUNT))


def _seen(signals: SignalState) -> tuple[object, ...]:
    actions = {s: a for s, a in signals.actions().items() if a != SignalAction()}
    return (
        signals.mask,
        actions,
        signals.pending,
        signals.ignored_set(),
        signals.caught_set(),
        [signals.ignores(signo) for signo in _SIGNALS],
        signals.next_deliverable(),
    )


def _step(signals: SignalState, what: int, signo: int, mask: int, action: SignalAction) -> object:
    if what == 0:
        signals.set_mask(mask)
    elif what == 1:
        signals.set_action(signo, action)
    elif what == 2:
        signals.add(SignalInfo(signo))
    elif what == 3 and signals.next_deliverable():
        return signals.take_for_handler(signals.next_deliverable())
    elif what == 4:
        signals.reset_for_exec()
    return None


@pytest.mark.parametrize("viewed", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_a_state_in_the_programs_memory_behaves_like_one_in_the_kernel(
    seed: int, viewed: bool
) -> None:
    source = random.Random(seed)
    kept, shared = SignalState(), SignalState()
    shared.share(_words(viewed=viewed), 7)
    for _ in range(400):
        what = source.choice((0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7))
        signo = source.choice(_SIGNALS)
        mask = source.getrandbits(64)
        flags = source.choice((0, SA_RESETHAND))
        action = SignalAction(source.choice((0, 1, 16, 17)), flags, source.getrandbits(64))
        assert _step(kept, what, signo, mask, action) == _step(shared, what, signo, mask, action)
        if what == 4:  # another program, with words of its own
            shared.share(_words(viewed=viewed), 7)
        elif what == 5:  # fork: the child goes on with the copied memory
            kept, child = kept.copy_for_fork(), shared.copy_for_fork()
            assert shared.shared is not None
            child.share(_words(shared.shared.content(), viewed=viewed), 8)
            shared = child
        elif what == 6:  # threads, and then another program
            shared.keep_alone()
            assert _seen(kept) == _seen(shared)
            shared.share(_words(), 7)
        assert _seen(kept) == _seen(shared)


@pytest.mark.parametrize("seed", range(50))
def test_garbage_in_the_words_neither_blocks_nor_catches_sigkill_and_sigstop(seed: int) -> None:
    words = _words(random.Random(seed).randbytes(SIZE))
    signals = SignalState()
    signals.shared = words
    assert not signals.mask & UNBLOCKABLE
    for signo in (Signal.SIGKILL, Signal.SIGSTOP):
        assert signals.action(signo) == SignalAction()
        assert not signals.ignores(signo)
        assert signo not in signals.actions()
        signals.add(SignalInfo(signo))
    assert signals.next_deliverable() in (Signal.SIGKILL, *range(1, Signal.SIGKILL))
    signals.keep_alone()
    assert not signals.mask & UNBLOCKABLE
    signals.reset_for_exec()
    assert all(action == SignalAction(SIG_IGN) for action in signals.actions().values())


def test_words_that_are_left_are_never_looked_at_again() -> None:
    words = _words(b"\xff" * SIZE)
    signals = SignalState()
    signals.shared = words
    signals.leave(_words())  # somebody else's
    assert signals.mask
    signals.leave(words)
    assert not signals.mask
    assert not signals.actions()


@pytest.mark.parametrize("viewed", [True, False])
def test_released_words_cannot_be_used(viewed: bool) -> None:
    words = _words(viewed=viewed)
    words.release()
    for use in (words.mask, words.actions, words.take_back, words.content):
        with pytest.raises(ValueError, match="released"):
            use()


def test_the_child_of_a_vfork_changes_its_own_words_only() -> None:
    words = _words()
    parent = SignalState()
    parent.share(words, 7)
    parent.set_mask(4)
    parent.set_action(Signal.SIGUSR1, SignalAction(16, 0, 0))
    child = parent.copy_for_fork()
    parent.share(words.copy(), 7)
    child.share(words, 8)
    child.set_mask(8)
    child.set_action(Signal.SIGUSR1, SignalAction())
    assert (parent.mask, parent.action(Signal.SIGUSR1).handler) == (4, 16)
    parent.add(SignalInfo(Signal.SIGUSR1))
    child.leave(words)
    parent.share(words, 7)
    assert (words.mask(), words.action(Signal.SIGUSR1).handler) == (4, 16)
    assert words.content()[8:16] == (2).to_bytes(4, "little") + (7).to_bytes(4, "little")
