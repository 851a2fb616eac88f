"""A screen for tests of programs that draw on one.

Owns `Display`, a small terminal emulator, and `Screen`, a command of a sandbox on it.
Rules: of xterm's language only what moves or erases text is understood; colours, modes
and questions are read and ignored, so nothing is ever answered.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Callable

from wasmsand.machine import CommandRequest, Machine, SandboxTerminal

ROWS, COLUMNS = 24, 80
PATIENCE = 60.0
"""Seconds. Nothing takes as long, but a machine that builds at the same time is slow."""

_SEQUENCE = re.compile(
    r"\x1b\[([?>=]?)([0-9;]*)([ !\"$]?[@-~])"  # CSI
    r"|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)"  # strings: titles, colours, questions
    r"|\x1b[()*+][0-9A-Za-z]"  # character sets
    r"|\x1b[^\[\]P()*+]"
)
_UNFINISHED = re.compile(r"\x1b(?:\[[?>=]?[0-9;]*[ !\"$]?|[\]P][^\x07\x1b]*\x1b?|[()*+])?\Z")


class Display:
    """Characters on a screen, as a terminal that reads `feed` would show them."""

    def __init__(self, rows: int = ROWS, columns: int = COLUMNS) -> None:
        self.rows, self.columns = rows, columns
        self.cells = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self._top, self._bottom = 0, rows - 1
        self._saved = (0, 0)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    @property
    def lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self.cells]

    def feed(self, data: bytes) -> None:
        text, self._rest = self._rest + self._decoder.decode(data), ""
        position = 0
        while position < len(text):
            if text[position] != "\x1b":
                self._character(text[position])
                position += 1
            elif found := _SEQUENCE.match(text, position):
                self._sequence(found)
                position = found.end()
            elif _UNFINISHED.match(text, position):
                self._rest = text[position:]
                return
            else:
                position += 1

    def _character(self, character: str) -> None:
        if character == "\r":
            self.column = 0
        elif character in "\n\v\f":
            self._index()
        elif character == "\b":
            self.column = max(0, self.column - 1)
        elif character == "\t":
            self.column = min(self.columns - 1, self.column // 8 * 8 + 8)
        elif character >= " ":
            if self.column == self.columns:
                self.column = 0
                self._index()
            self.cells[self.row][self.column] = character
            self.column += 1

    def _index(self) -> None:
        if self.row == self._bottom:
            self._scroll(self._top, 1)
        else:
            self.row = min(self.rows - 1, self.row + 1)

    def _reverse_index(self) -> None:
        if self.row == self._top:
            self._scroll(self._top, -1)
        else:
            self.row = max(0, self.row - 1)

    def _scroll(self, top: int, count: int) -> None:
        """Move the lines from `top` to the region's end up, or down if negative."""
        for _ in range(min(abs(count), self.rows)):
            gone, new = (top, self._bottom) if count > 0 else (self._bottom, top)
            del self.cells[gone]
            self.cells.insert(new, [" "] * self.columns)

    def _sequence(self, found: re.Match[str]) -> None:
        private, parameters, final = found.groups()
        if final is None:
            action = {"M": self._reverse_index, "D": self._index, "7": self._save}.get(
                found.group()[1:]
            )
            if found.group() == "\x1b8":
                self.row, self.column = self._saved
            elif action is not None:
                action()
        elif not private:
            self._control(final, [int(number or 0) for number in parameters.split(";")])

    def _save(self) -> None:
        self._saved = (self.row, self.column)

    def _control(self, final: str, parameters: list[int]) -> None:
        first = parameters[0]
        count = max(1, first)
        line = self.cells[self.row]
        self.column = min(self.column, self.columns - 1)
        column = self.column
        if final in "Hf":
            second = parameters[1] if len(parameters) > 1 else 1
            self.row = min(self.rows, count) - 1
            self.column = min(self.columns, max(1, second)) - 1
        elif final in "ABCDGd":
            self._move(final, count)
        elif final == "J":
            self._erase_line(first)
            for row in self.cells[self.row + 1 :] if first == 0 else self.cells[: self.row]:
                row[:] = [" "] * self.columns
            if first >= 2:
                self.cells = [[" "] * self.columns for _ in range(self.rows)]
        elif final == "K":
            self._erase_line(first)
        elif final in "LM":
            self._scroll(self.row, count if final == "M" else -count)
        elif final in "ST":
            self._scroll(self._top, count if final == "S" else -count)
        elif final == "P":
            line[column:] = (line[column + count :] + [" "] * count)[: self.columns - column]
        elif final == "@":
            line[column:] = ([" "] * count + line[column:])[: self.columns - column]
        elif final == "X":
            line[column : column + count] = [" "] * len(line[column : column + count])
        elif final == "r":
            last = parameters[1] if len(parameters) > 1 else 0
            self._top, self._bottom = count - 1, (last or self.rows) - 1
            self.row = self.column = 0

    def _move(self, final: str, count: int) -> None:
        if final in "CDG":
            target = {"C": self.column + count, "D": self.column - count, "G": count - 1}[final]
            self.column = min(self.columns - 1, max(0, target))
        else:
            target = {"A": self.row - count, "B": self.row + count, "d": count - 1}[final]
            self.row = min(self.rows - 1, max(0, target))

    def _erase_line(self, what: int) -> None:
        line = self.cells[self.row]
        column = min(self.column, self.columns - 1)
        if what == 0:
            line[column:] = [" "] * (self.columns - column)
        elif what == 1:
            line[: column + 1] = [" "] * (column + 1)
        else:
            line[:] = [" "] * self.columns


class Screen:
    """A command line on a terminal of a machine, whose screen is read all the time."""

    def __init__(self, machine: Machine, command: str, term: str = "xterm-256color") -> None:
        environ = {
            "HOME": "/home/user",
            "LANG": "C.UTF-8",
            "PATH": "/usr/bin",
            "TERM": term,
        }
        self._display = Display()
        self._changed = threading.Condition()
        request = CommandRequest(("/bin/bash", "-c", command), environ, "/home/user")
        self._terminal: SandboxTerminal = machine.open_terminal(request)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while data := self._terminal.read():
            with self._changed:
                self._display.feed(data)
                self._changed.notify_all()

    @property
    def lines(self) -> list[str]:
        with self._changed:
            return self._display.lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def type(self, keys: str) -> None:
        self._terminal.write(keys.encode())

    def wait_until(self, shows: Callable[[list[str]], bool]) -> list[str]:
        """Wait for a screen that `shows` what is expected; its lines."""
        with self._changed:
            seen = self._changed.wait_for(lambda: shows(self._display.lines), PATIENCE)
            picture = "\n".join(self._display.lines)
        assert seen, f"the screen was:\n{picture}"
        return picture.split("\n")

    def wait_for(self, text: str) -> list[str]:
        """Wait until `text` is somewhere on the screen."""
        return self.wait_until(lambda lines: any(text in line for line in lines))

    def wait_for_exit(self) -> int:
        code = self._terminal.wait(PATIENCE)
        assert code is not None, f"it did not end; the screen was:\n{self.text}"
        return code

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._terminal.close()
        self._reader.join(PATIENCE)
