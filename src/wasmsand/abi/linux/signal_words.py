"""A program's signal mask and actions, in its own memory.

Owns `SignalWords`, the layout of the libc's exported `__signal_words` (decision 0029). Rules: the
program writes there whatever it likes, and every value is taken as it is: a wrong one concerns only
signals of that program. SIGKILL and SIGSTOP can be neither blocked nor caught. The kernel writes
the mask and the actions only while the program does not run, `owner` at any time. Nothing is read
or written after `release`.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Final

from wasmsand.kernel.process.signals import (
    SIG_DFL,
    SIG_IGN,
    SIGNAL_MAX,
    UNBLOCKABLE,
    SignalAction,
)

if TYPE_CHECKING:
    from wasmsand.abi.memory import GuestMemory, Words
    from wasmsand.engine.protocol import Instance

_OWNER_KERNEL, _OWNER_PROGRAM, _OWNER_PENDING = range(3)
_MASK_AT: Final = 0
_OWNER_AT: Final = 1
"""The owner in the lower half, the process id in the upper one."""
COUNT: Final = 2 + 2 * SIGNAL_MAX
"""Double words. Signal n has two at 2n: handler and flags, and the mask of its action."""
SIZE: Final = COUNT * 8
_ACTION: Final = Struct("<IIQ")
_HANDLERS: Final = Struct("<16x" + "I12x" * SIGNAL_MAX)
_DEFAULTS: Final = bytes(SIZE)
_NO_ACTIONS: Final = _DEFAULTS[16:]
_LOWER_HALF: Final = 0xFFFF_FFFF
_BLOCKABLE: Final = ~UNBLOCKABLE
_DEFAULT: Final = SignalAction()
_CATCHABLE: Final = frozenset(
    signo for signo in range(1, SIGNAL_MAX + 1) if not UNBLOCKABLE >> (signo - 1) & 1
)


class SignalWords:
    """The signal words of one program (`SharedSignals` of the kernel)."""

    __slots__ = ("_pid", "_words")

    def __init__(self, words: Words) -> None:
        self._words = words
        self._pid = 0

    def copy(self) -> SignalWords:
        """The same words in memory of the kernel."""
        copy = SignalWords(memoryview(bytearray(SIZE)).cast("Q"))
        copy.set_content(self.content())
        return copy

    def mask(self) -> int:
        """The blocked set, without SIGKILL and SIGSTOP."""
        return self._words[_MASK_AT] & _BLOCKABLE

    def set_mask(self, mask: int) -> None:
        """Replace the blocked set."""
        self._words[_MASK_AT] = mask

    def action(self, signo: int) -> SignalAction:
        """The action for `signo`."""
        if signo not in _CATCHABLE:
            return _DEFAULT
        words, place = self._words, 2 * signo
        first = words[place]
        return SignalAction(first & _LOWER_HALF, first >> 32, words[place + 1])

    def handler(self, signo: int) -> int:
        """The handler of the action for `signo`."""
        return self._words[2 * signo] & _LOWER_HALF if signo in _CATCHABLE else SIG_DFL

    def set_action(self, signo: int, action: SignalAction) -> None:
        """Set one action."""
        words, place = self._words, 2 * signo
        words[place + 1] = action.mask
        words[place] = action.handler | action.flags << 32

    def actions(self) -> dict[int, SignalAction]:
        """All actions other than the default."""
        content = self.content()[16:]
        if content == _NO_ACTIONS:
            return {}
        return {
            signo: SignalAction(*values)
            for signo, values in enumerate(_ACTION.iter_unpack(content), 1)
            if values != _DEFAULT and signo in _CATCHABLE
        }

    def ignored(self) -> list[int]:
        """The signals that are ignored."""
        handlers = _HANDLERS.unpack(self.content())
        if SIG_IGN not in handlers:
            return []
        return [
            s for s, handler in enumerate(handlers, 1) if handler == SIG_IGN and s in _CATCHABLE
        ]

    def fill(self, mask: int, actions: Mapping[int, SignalAction]) -> None:
        """Replace everything."""
        self.set_content(_DEFAULTS)
        self._words[_MASK_AT] = mask
        for signo, action in actions.items():
            self.set_action(signo, action)

    def content(self) -> bytes:
        """Mask and actions, for `set_content`."""
        return self._words.tobytes()

    def set_content(self, content: bytes) -> None:
        """Replace everything by the content of another program's words."""
        words = self._words
        if isinstance(words, memoryview):
            words[:] = memoryview(content).cast("Q")
        else:
            words.replace(content)

    def give(self, pid: int) -> None:
        """The words belong to the program from now on, which runs in this process."""
        self._pid = pid
        self.say_pending(False)

    def take_back(self) -> None:
        """The program has to ask the kernel from now on."""
        self._words[_OWNER_AT] = _OWNER_KERNEL

    def say_pending(self, pending: bool) -> None:
        """Whether the program must tell the kernel when it changes a mask or an action."""
        owner = _OWNER_PENDING if pending else _OWNER_PROGRAM
        self._words[_OWNER_AT] = owner | self._pid << 32

    def release(self) -> None:
        """The program's memory is about to go."""
        self._words.release()


def signal_words(instance: Instance, memory: GuestMemory) -> SignalWords | None:
    """The words of a program; None if it has none, or if they do not lie within its memory."""
    address = instance.exported_address("__signal_words")
    if address is None or address % 8 or not 0 <= address <= instance.memory_size() - SIZE:
        return None
    return SignalWords(memory.words(address, COUNT))
