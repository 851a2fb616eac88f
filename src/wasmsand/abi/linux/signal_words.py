"""A program's signal mask and actions, in its own memory.

Owns `SignalWords`, the layout of the libc's exported `__signal_words` (decision 0029). Rules: the
program writes there whatever it likes, and every value is taken as it is: a wrong one concerns only
signals of that program. SIGKILL and SIGSTOP can be neither blocked nor caught. The kernel writes
the mask and the actions only while the program does not run, `owner` at any time.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Protocol

from wasmsand.kernel.process.signals import SIG_IGN, SIGNAL_MAX, UNBLOCKABLE, SignalAction

if TYPE_CHECKING:
    from wasmsand.abi.memory import GuestMemory
    from wasmsand.engine.protocol import Instance

_OWNER_KERNEL, _OWNER_PROGRAM, _OWNER_PENDING = range(3)
_MASK: Final = Struct("<Q")
_OWNER: Final = Struct("<I")
_OWNER_AND_PID: Final = Struct("<II")
_ACTION: Final = Struct("<IIQ")
"""Handler, flags, mask."""
_HANDLERS: Final = Struct("<" + "I12x" * SIGNAL_MAX)
_OWNER_AT: Final = 8
_ACTIONS_AT: Final = 16
_NO_ACTIONS: Final = bytes(SIGNAL_MAX * _ACTION.size)
SIZE: Final = _ACTIONS_AT + len(_NO_ACTIONS)
_DEFAULTS: Final = bytes(SIZE)
_DEFAULT: Final = SignalAction()
_CATCHABLE: Final = frozenset(
    signo for signo in range(1, SIGNAL_MAX + 1) if not UNBLOCKABLE >> (signo - 1) & 1
)


class _Memory(Protocol):
    """What is needed of `GuestMemory`."""

    def read(self, address: int, count: int) -> bytes: ...
    def write(self, address: int, data: bytes | bytearray | memoryview) -> None: ...
    def unpack(self, layout: Struct, address: int) -> tuple[Any, ...]: ...
    def pack(self, layout: Struct, address: int, *values: Any) -> None: ...


class _HeldBytes:
    """Memory of the kernel, for words that no program has."""

    __slots__ = ("_bytes",)

    def __init__(self, content: bytes) -> None:
        self._bytes = bytearray(content)

    def read(self, address: int, count: int) -> bytes:
        return bytes(self._bytes[address : address + count])

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        self._bytes[address : address + len(data)] = data

    def unpack(self, layout: Struct, address: int) -> tuple[Any, ...]:
        return layout.unpack_from(self._bytes, address)

    def pack(self, layout: Struct, address: int, *values: Any) -> None:
        layout.pack_into(self._bytes, address, *values)


class SignalWords:
    """The signal words of one program (`SharedSignals` of the kernel)."""

    __slots__ = ("_address", "_memory")

    def __init__(self, memory: _Memory, address: int) -> None:
        self._memory = memory
        self._address = address

    def copy(self) -> SignalWords:
        """The same words in memory of the kernel."""
        return SignalWords(_HeldBytes(self.content()), 0)

    def mask(self) -> int:
        """The blocked set, without SIGKILL and SIGSTOP."""
        mask: int = self._memory.unpack(_MASK, self._address)[0]
        return mask & ~UNBLOCKABLE

    def set_mask(self, mask: int) -> None:
        """Replace the blocked set."""
        self._memory.pack(_MASK, self._address, mask)

    def _action_at(self, signo: int) -> int:
        return self._address + _ACTIONS_AT + (signo - 1) * _ACTION.size

    def action(self, signo: int) -> SignalAction:
        """The action for `signo`."""
        if signo not in _CATCHABLE:
            return _DEFAULT
        return SignalAction(*self._memory.unpack(_ACTION, self._action_at(signo)))

    def set_action(self, signo: int, action: SignalAction) -> None:
        """Set one action."""
        self._memory.pack(_ACTION, self._action_at(signo), *action)

    def actions(self) -> dict[int, SignalAction]:
        """All actions other than the default."""
        content = self._memory.read(self._address + _ACTIONS_AT, len(_NO_ACTIONS))
        if content == _NO_ACTIONS:
            return {}
        return {
            signo: SignalAction(*values)
            for signo, values in enumerate(_ACTION.iter_unpack(content), 1)
            if values != _DEFAULT and signo in _CATCHABLE
        }

    def ignored(self) -> list[int]:
        """The signals that are ignored."""
        handlers = self._memory.unpack(_HANDLERS, self._address + _ACTIONS_AT)
        if SIG_IGN not in handlers:
            return []
        return [
            s for s, handler in enumerate(handlers, 1) if handler == SIG_IGN and s in _CATCHABLE
        ]

    def fill(self, mask: int, actions: Mapping[int, SignalAction]) -> None:
        """Replace everything."""
        self._memory.write(self._address, _DEFAULTS)
        self.set_mask(mask)
        for signo, action in actions.items():
            self.set_action(signo, action)

    def content(self) -> bytes:
        """Mask and actions, for `set_content`."""
        return self._memory.read(self._address, SIZE)

    def set_content(self, content: bytes) -> None:
        """Replace everything by the content of another program's words."""
        self._memory.write(self._address, content)

    def give(self, pid: int) -> None:
        """The words belong to the program from now on, which runs in this process."""
        self._memory.pack(_OWNER_AND_PID, self._address + _OWNER_AT, _OWNER_PROGRAM, pid)

    def take_back(self) -> None:
        """The program has to ask the kernel from now on."""
        self._memory.pack(_OWNER_AND_PID, self._address + _OWNER_AT, _OWNER_KERNEL, 0)

    def say_pending(self, pending: bool) -> None:
        """Whether the program must tell the kernel when it changes a mask or an action."""
        owner = _OWNER_PENDING if pending else _OWNER_PROGRAM
        self._memory.pack(_OWNER, self._address + _OWNER_AT, owner)


def signal_words(instance: Instance, memory: GuestMemory) -> SignalWords | None:
    """The words of a program; None if it has none, or if they do not lie within its memory."""
    address = instance.exported_address("__signal_words")
    if address is None or address % 8 or not 0 <= address <= instance.memory_size() - SIZE:
        return None
    return SignalWords(memory, address)
