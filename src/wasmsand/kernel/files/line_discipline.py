"""The terminal's line discipline: the processing between keyboard and reading program.

Owns `Termios` and `LineDiscipline`: canonical editing, echo, signal characters, flow control,
newline translation. Rules: it only processes bytes; signals are reported to the caller, not sent.
Input is bounded as on Linux (one line of 4095 bytes and its terminator); the caller keeps what does
not fit.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final

from wasmsand.kernel.limits import TERMINAL_ECHO_MAX, TERMINAL_INPUT_MAX

# c_iflag
IGNCR: Final = 0o200
ICRNL: Final = 0o400
INLCR: Final = 0o100
ISTRIP: Final = 0o40
IUTF8: Final = 0o40000
IXON: Final = 0o2000
IXANY: Final = 0o4000
# c_oflag
OPOST: Final = 0o1
ONLCR: Final = 0o4
OCRNL: Final = 0o10
# c_cflag: 38400 baud, 8 bits, receiver on
_CFLAG_DEFAULT: Final = 0o15 | 0o60 | 0o200
# c_lflag
ISIG: Final = 0o1
ICANON: Final = 0o2
ECHO: Final = 0o10
ECHOE: Final = 0o20
ECHOK: Final = 0o40
ECHONL: Final = 0o100
NOFLSH: Final = 0o200
TOSTOP: Final = 0o400
ECHOCTL: Final = 0o1000
ECHOKE: Final = 0o4000
IEXTEN: Final = 0o100000
# c_cc
VINTR, VQUIT, VERASE, VKILL, VEOF, VTIME, VMIN, VSWTC, VSTART, VSTOP, VSUSP, VEOL = range(12)
VREPRINT, VDISCARD, VWERASE, VLNEXT, VEOL2 = range(12, 17)

SIGINT: Final = 2
SIGQUIT: Final = 3
SIGTSTP: Final = 20

_DISABLED: Final = 0
_FORMAT: Final = struct.Struct("<4IB19s")
_DEFAULT_CC: Final = bytes([3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0])


class Termios:
    """Terminal settings, in the kernel's layout."""

    __slots__ = ("cc", "cflag", "iflag", "lflag", "line", "oflag")

    SIZE: Final = _FORMAT.size

    def __init__(self) -> None:
        self.iflag = ICRNL | IXON | IUTF8
        self.oflag = OPOST | ONLCR
        self.cflag = _CFLAG_DEFAULT
        self.lflag = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN
        self.line = 0
        self.cc = _DEFAULT_CC

    def pack(self) -> bytes:
        """The settings as TCGETS returns them."""
        return _FORMAT.pack(self.iflag, self.oflag, self.cflag, self.lflag, self.line, self.cc)

    def unpack(self, data: bytes) -> None:
        """Set the settings as TCSETS does."""
        self.iflag, self.oflag, self.cflag, self.lflag, self.line, self.cc = _FORMAT.unpack(data)


class LineDiscipline:
    """Input editing and output processing for one terminal."""

    __slots__ = ("_ends", "_line", "_literal_next", "_ready", "output_stopped", "termios")

    def __init__(self) -> None:
        self.termios = Termios()
        self._line = bytearray()  # canonical mode: the line being edited
        self._ready = bytearray()  # bytes that a read may take
        self._ends: deque[int] = deque()
        # Canonical mode: positions in `_ready` at which a read must stop, one per line. A VEOF adds
        # an end but no byte: on an empty line it makes a read return 0 bytes.
        self._literal_next = False
        self.output_stopped = False
        """Output is suspended by VSTOP until VSTART."""

    def receive(self, data: bytes) -> tuple[int, bytes, list[int]]:
        """Process typed bytes. Returns (how many were taken, what to echo, signals to send).

        Not all bytes are taken while the program leaves complete input unread.
        """
        termios = self.termios
        echo = bytearray()
        signals: list[int] = []
        taken = 0
        for byte in data:
            if self._full() and (self._ends or not termios.lflag & ICANON):
                break
            taken += 1
            if termios.iflag & ISTRIP:
                byte &= 0x7F
            self._receive_byte(byte, termios, echo, signals)
        return taken, self.process_output(bytes(echo)), signals

    def _full(self) -> bool:
        used = len(self._line) + len(self._ready)
        return used >= TERMINAL_INPUT_MAX - 1 or len(self._ends) >= TERMINAL_INPUT_MAX

    def _receive_byte(
        self, byte: int, termios: Termios, echo: bytearray, signals: list[int]
    ) -> None:
        if self._literal_next:
            self._literal_next = False
            self._append(byte, termios, echo)
            return
        if byte == 13:
            if termios.iflag & IGNCR:
                return
            if termios.iflag & ICRNL:
                byte = 10
        elif byte == 10 and termios.iflag & INLCR:
            byte = 13
        if self._controls_output(byte, termios):
            return
        cc = termios.cc
        if termios.lflag & ISIG and byte != _DISABLED:
            for index, signo in ((VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)):
                if byte == cc[index]:
                    if not termios.lflag & NOFLSH:
                        self.flush_input()
                    self.output_stopped = False
                    self._echo(byte, termios, echo)
                    signals.append(signo)
                    return
        if termios.lflag & ICANON:
            self._edit(byte, termios, echo)
        else:
            self._append(byte, termios, echo)

    def _controls_output(self, byte: int, termios: Termios) -> bool:
        """Whether `byte` is VSTOP or VSTART, which programs never see."""
        if not termios.iflag & IXON or byte == _DISABLED:
            return False
        if byte in (termios.cc[VSTOP], termios.cc[VSTART]):
            self.output_stopped = byte == termios.cc[VSTOP]
            return True
        if termios.iflag & IXANY:
            self.output_stopped = False
        return False

    def _append(self, byte: int, termios: Termios, echo: bytearray) -> None:
        if self._full():
            return
        buffer = self._line if termios.lflag & ICANON else self._ready
        buffer.append(byte)
        self._echo(byte, termios, echo)

    def _edit(self, byte: int, termios: Termios, echo: bytearray) -> None:
        cc = termios.cc
        if byte != _DISABLED:
            if byte == cc[VERASE]:
                self._erase(termios, echo)
                return
            if byte == cc[VKILL]:
                while self._line:
                    self._erase(termios, echo)
                return
            if byte == cc[VEOF]:
                self._end_line()
                return
            if termios.lflag & IEXTEN and self._edit_extended(byte, termios, echo):
                return
        if byte == 10 or (byte != _DISABLED and byte in (cc[VEOL], cc[VEOL2])):
            self._line.append(byte)
            if termios.lflag & (ECHO | ECHONL):
                echo.append(byte)
            self._end_line()
            return
        self._append(byte, termios, echo)

    def _edit_extended(self, byte: int, termios: Termios, echo: bytearray) -> bool:
        cc = termios.cc
        if byte == cc[VWERASE]:
            while self._line and self._line[-1] in b" \t":
                self._erase(termios, echo)
            while self._line and self._line[-1] not in b" \t":
                self._erase(termios, echo)
        elif byte == cc[VLNEXT]:
            self._literal_next = True
            if termios.lflag & ECHO and termios.lflag & ECHOCTL:
                echo += b"^\b"
        elif byte == cc[VREPRINT]:
            if termios.lflag & ECHO and len(echo) < TERMINAL_ECHO_MAX:
                self._echo(byte, termios, echo)
                echo.append(10)
                for typed in bytes(self._line):
                    self._echo(typed, termios, echo)
        else:
            return False
        return True

    def _end_line(self) -> None:
        self._ready += self._line
        self._line.clear()
        self._ends.append(len(self._ready))

    def _erase(self, termios: Termios, echo: bytearray) -> None:
        if not self._line:
            return
        erased = self._line.pop()
        if termios.iflag & IUTF8:
            while 0x80 <= erased < 0xC0 and self._line:
                erased = self._line.pop()
        if termios.lflag & ECHO and termios.lflag & ECHOE:
            width = 2 if erased < 32 and termios.lflag & ECHOCTL else 1
            echo += b"\b \b" * width

    def _echo(self, byte: int, termios: Termios, echo: bytearray) -> None:
        if not termios.lflag & ECHO:
            return
        if termios.lflag & ECHOCTL and (byte < 32 or byte == 127) and byte not in (9, 10):
            echo += b"^" + bytes([byte ^ 0x40])
        else:
            echo.append(byte)

    def readable(self) -> bool:
        """Whether a read would return at once."""
        if self.termios.lflag & ICANON:
            return bool(self._ends)
        wanted = 1 if self.termios.cc[VTIME] else max(1, self.termios.cc[VMIN])
        return len(self._ready) >= wanted

    def available(self) -> int:
        """Bytes available to a read (FIONREAD)."""
        return len(self._ready)

    def take(self, count: int) -> bytes | None:
        """The result of a read of `count` bytes; None if it must wait; empty at end of file."""
        if not self.termios.lflag & ICANON:
            if len(self._ready) < min(count, self.termios.cc[VMIN]):
                return None
            if not self._ready and self.termios.cc[VTIME]:
                return None
            return self.take_now(count)
        if not self._ends:
            return None
        return self.take_now(min(count, self._ends[0]))

    def take_now(self, count: int) -> bytes:
        """Take up to `count` available bytes (a non-canonical read that timed out)."""
        taken = bytes(self._ready[:count])
        del self._ready[:count]
        if self._ends:
            self._ends = deque([end - len(taken) for end in self._ends])
            if self._ends[0] == 0:
                self._ends.popleft()
        return taken

    def flush_input(self) -> None:
        """Discard input that was not read."""
        self._line.clear()
        self._ready.clear()
        self._ends.clear()

    def change(self, data: bytes) -> None:
        """Change the settings. When canonical mode is switched off, all typed bytes become
        readable; when it is switched on, they become one line."""
        was_canonical = self.termios.lflag & ICANON
        self.termios.unpack(data)
        if self.termios.lflag & ICANON == was_canonical:
            return
        self._ends.clear()
        if was_canonical:
            self._ready += self._line
            self._line.clear()
        elif self._ready:
            self._ends.append(len(self._ready))

    def process_output(self, data: bytes) -> bytes:
        """Convert a program's output for the terminal."""
        oflag = self.termios.oflag
        if oflag & OPOST:
            if oflag & OCRNL:
                data = data.replace(b"\r", b"\n")
            if oflag & ONLCR:
                data = data.replace(b"\n", b"\r\n")
        return data
