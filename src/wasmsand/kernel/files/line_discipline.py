"""The terminal's line discipline: what happens between keys and a reading program.

Owns `Termios` and `LineDiscipline`: canonical editing, echo, signal characters,
newline translation. Rules: pure byte processing; signals are reported to the
caller, not sent; buffers are bounded (4096 bytes of input, as on Linux).
"""

from __future__ import annotations

import struct
from typing import Final

INPUT_MAX: Final = 4096

# c_iflag
IGNCR: Final = 0o200
ICRNL: Final = 0o400
INLCR: Final = 0o100
ISTRIP: Final = 0o40
IUTF8: Final = 0o40000
IXON: Final = 0o2000
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
CONTROL_CHARACTERS: Final = 19

SIGINT: Final = 2
SIGQUIT: Final = 3
SIGTSTP: Final = 20

_DISABLED: Final = 0
_FORMAT: Final = struct.Struct("<4IB19s")
_DEFAULT_CC: Final = bytes(
    [3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0]
)


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
        """As TCGETS gives it."""
        return _FORMAT.pack(self.iflag, self.oflag, self.cflag, self.lflag, self.line, self.cc)

    def unpack(self, data: bytes) -> None:
        """As TCSETS sets it."""
        self.iflag, self.oflag, self.cflag, self.lflag, self.line, self.cc = _FORMAT.unpack(data)


class LineDiscipline:
    """Input editing and output processing for one terminal."""

    __slots__ = ("_line", "_literal_next", "_ready", "eof_pending", "termios")

    def __init__(self) -> None:
        self.termios = Termios()
        self._line = bytearray()  # canonical: being edited
        self._ready = bytearray()  # what a read may take
        self.eof_pending: list[int] = []
        # Positions in `_ready` where a VEOF ended a line: a read stops there, and a VEOF at
        # the start of a line makes a read return nothing.
        self._literal_next = False

    def receive(self, data: bytes) -> tuple[bytes, list[int]]:
        """Bytes typed at the terminal: (what to echo, signals to send)."""
        termios = self.termios
        echo = bytearray()
        signals: list[int] = []
        for byte in data:
            if termios.iflag & ISTRIP:
                byte &= 0x7F
            self._receive_byte(byte, termios, echo, signals)
        return self.process_output(bytes(echo)), signals

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
        cc = termios.cc
        if termios.lflag & ISIG and byte != _DISABLED:
            for index, signo in ((VINTR, SIGINT), (VQUIT, SIGQUIT), (VSUSP, SIGTSTP)):
                if byte == cc[index]:
                    if not termios.lflag & NOFLSH:
                        self.flush_input()
                    self._echo(byte, termios, echo)
                    signals.append(signo)
                    return
        if termios.lflag & ICANON:
            self._edit(byte, termios, echo)
        else:
            self._append(byte, termios, echo)

    def _append(self, byte: int, termios: Termios, echo: bytearray) -> None:
        buffer = self._line if termios.lflag & ICANON else self._ready
        if len(self._line) + len(self._ready) >= INPUT_MAX:
            echo.append(7)
            return
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
            if byte == cc[VWERASE] and termios.lflag & IEXTEN:
                while self._line and self._line[-1] in b" \t":
                    self._erase(termios, echo)
                while self._line and self._line[-1] not in b" \t":
                    self._erase(termios, echo)
                return
            if byte == cc[VLNEXT] and termios.lflag & IEXTEN:
                self._literal_next = True
                return
            if byte == cc[VEOF]:
                self._ready += self._line
                self._line.clear()
                self.eof_pending.append(len(self._ready))
                return
        if byte == 10 or (byte != _DISABLED and byte in (cc[VEOL], cc[VEOL2])):
            self._line.append(byte)
            if termios.lflag & (ECHO | ECHONL):
                echo.append(byte)
            self._ready += self._line
            self._line.clear()
            return
        self._append(byte, termios, echo)

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
            return bool(self.eof_pending) or b"\n" in self._ready or bool(self._ready)
        return len(self._ready) >= max(1, self.termios.cc[VMIN])

    def available(self) -> int:
        """Bytes that a read could take (FIONREAD)."""
        return len(self._ready)

    def take(self, count: int) -> bytes | None:
        """What a read of `count` gets; None if there is nothing yet; empty at EOF."""
        ready = self._ready
        if not self.termios.lflag & ICANON:
            if not ready:
                return b"" if self.termios.cc[VMIN] == 0 and not self.termios.cc[VTIME] else None
            if len(ready) < min(count, self.termios.cc[VMIN]):
                return None
            return self._cut(min(count, len(ready)))
        if self.eof_pending and self.eof_pending[0] == 0:
            self.eof_pending.pop(0)
            return b""
        if not ready:
            return None
        newline = ready.find(b"\n")
        length = len(ready) if newline < 0 else newline + 1
        # A VEOF after some characters only ends their line; after a newline it is an end of
        # file of its own, for the next read.
        ends_line = bool(self.eof_pending) and (
            self.eof_pending[0] < length or (newline < 0 and self.eof_pending[0] == length)
        )
        if ends_line:
            length = self.eof_pending[0]
        taken = self._cut(min(length, count))
        if ends_line and self.eof_pending[0] == 0:
            self.eof_pending.pop(0)
        return taken

    def _cut(self, length: int) -> bytes:
        taken = bytes(self._ready[:length])
        del self._ready[:length]
        self.eof_pending = [position - length for position in self.eof_pending]
        return taken

    def flush_input(self) -> None:
        """Forget what was typed and not read."""
        self._line.clear()
        self._ready.clear()
        self.eof_pending.clear()

    def change(self, data: bytes) -> None:
        """New settings; what was typed becomes readable when editing is switched off."""
        was_canonical = self.termios.lflag & ICANON
        self.termios.unpack(data)
        if was_canonical and not self.termios.lflag & ICANON:
            self._ready += self._line
            self._line.clear()
            self.eof_pending.clear()

    def process_output(self, data: bytes) -> bytes:
        """What a program wrote, as the terminal shows it."""
        oflag = self.termios.oflag
        if oflag & OPOST:
            if oflag & OCRNL:
                data = data.replace(b"\r", b"\n")
            if oflag & ONLCR:
                data = data.replace(b"\n", b"\r\n")
        return data
