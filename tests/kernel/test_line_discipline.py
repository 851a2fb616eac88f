"""The line discipline is the same as Linux's, byte for byte; expectations come from a real pty."""

from __future__ import annotations

import struct

import pytest

from wasmsand.kernel.files.line_discipline import (
    ECHO,
    ECHONL,
    ICANON,
    ICRNL,
    IGNCR,
    INLCR,
    ISIG,
    ISTRIP,
    IUTF8,
    IXANY,
    NOFLSH,
    OCRNL,
    ONLCR,
    OPOST,
    SIGINT,
    SIGQUIT,
    SIGTSTP,
    VEOL,
    VMIN,
    VTIME,
    LineDiscipline,
    Termios,
)
from wasmsand.kernel.limits import TERMINAL_INPUT_MAX

pytestmark = pytest.mark.needs_sources


class Keyboard(LineDiscipline):
    """A line discipline with shortcuts for tests."""

    def __init__(self) -> None:
        super().__init__()
        self.termios.iflag &= ~IUTF8
        self.sent: list[int] = []

    def types(self, data: bytes) -> bytes:
        """Type keys; returns what is echoed."""
        taken, echo, signals = self.receive(data)
        assert taken == len(data)
        self.sent += signals
        return echo

    def reads(self, *counts: int) -> list[bytes | None]:
        """Successive reads."""
        return [self.take(count) for count in counts or (4096,)]

    def set_control(self, index: int, value: int) -> None:
        cc = bytearray(self.termios.cc)
        cc[index] = value
        self.termios.cc = bytes(cc)

    def set_flags(self, *, lflag_off: int = 0, lflag_on: int = 0) -> None:
        """Set flags, as tcsetattr does."""
        wanted = Termios()
        wanted.unpack(self.termios.pack())
        wanted.lflag = wanted.lflag & ~lflag_off | lflag_on
        self.change(wanted.pack())


@pytest.fixture
def keyboard() -> Keyboard:
    return Keyboard()


@pytest.fixture
def raw(keyboard: Keyboard) -> Keyboard:
    keyboard.set_flags(lflag_off=ICANON | ECHO)
    return keyboard


@pytest.mark.parametrize(
    ("typed", "reads", "echoed"),
    [
        (b"hello\n", [b"hello\n"], b"hello\r\n"),
        (b"hello\r", [b"hello\n"], b"hello\r\n"),
        (b"abc\x7fd\n", [b"abd\n"], b"abc\b \bd\r\n"),
        (b"\x7f\n", [b"\n"], b"\r\n"),
        (b"ab cd\x17x\n", [b"ab x\n"], b"ab cd\b \b\b \bx\r\n"),
        (b"ab  \x17x\n", [b"x\n"], b"ab  \b \b\b \b\b \b\b \bx\r\n"),
        (b"abc\x15yz\n", [b"yz\n"], b"abc\b \b\b \b\b \byz\r\n"),
        (b"\x01\x7fq\n", [b"q\n"], b"^A\b \b\b \bq\r\n"),
        (b"a\x16\x03b\n", [b"a\x03b\n"], b"a^\b^Cb\r\n"),
        (b"x\x12y\n", [b"xy\n"], b"x^R\r\nxy\r\n"),
        (b"a\tb\n", [b"a\tb\n"], b"a\tb\r\n"),
        ("é\x7fx\n".encode(), [b"\xc3x\n"], b"\xc3\xa9\b \bx\r\n"),
    ],
    ids=repr,
)
def test_a_line_is_edited_and_echoed(
    keyboard: Keyboard, typed: bytes, reads: list[bytes], echoed: bytes
) -> None:
    assert keyboard.types(typed) == echoed
    assert keyboard.reads() == reads


def test_erase_takes_a_whole_utf8_character_when_told(keyboard: Keyboard) -> None:
    keyboard.termios.iflag |= IUTF8
    assert keyboard.types("aé\x7fx\n".encode()) == b"a\xc3\xa9\b \bx\r\n"
    assert keyboard.reads() == [b"ax\n"]


def test_nothing_can_be_read_before_the_end_of_the_line(keyboard: Keyboard) -> None:
    keyboard.types(b"half a li")
    assert keyboard.reads() == [None]
    assert not keyboard.readable()
    assert keyboard.available() == 0
    keyboard.types(b"ne\n")
    assert keyboard.readable()
    assert keyboard.available() == 12


@pytest.mark.parametrize(
    ("typed", "sizes", "reads"),
    [
        (b"one\ntwo\n", (100, 100, 100), [b"one\n", b"two\n", None]),
        (b"long line\n", (4, 4, 100, 1), [b"long", b" lin", b"e\n", None]),
        (b"line\n\x04", (100, 100, 100), [b"line\n", b"", None]),
        (b"a\x04b\x04c\n", (9, 9, 9, 9), [b"a", b"b", b"c\n", None]),
    ],
    ids=["two lines", "short reads", "EOF after a line", "several EOFs"],
)
def test_a_read_ends_at_a_line_or_at_eof(
    keyboard: Keyboard, typed: bytes, sizes: tuple[int, ...], reads: list[bytes | None]
) -> None:
    keyboard.types(typed)
    assert keyboard.reads(*sizes) == reads


def test_eof_ends_a_line_without_a_byte(keyboard: Keyboard) -> None:
    assert keyboard.types(b"ab\x04") == b"ab"
    assert keyboard.reads(100, 100) == [b"ab", None]


def test_eof_at_the_start_of_a_line_is_the_end_of_file_once(keyboard: Keyboard) -> None:
    keyboard.types(b"\x04")
    assert keyboard.readable()
    assert keyboard.reads(100, 100) == [b"", None]


def test_an_extra_end_of_line_character(keyboard: Keyboard) -> None:
    keyboard.set_control(VEOL, ord(";"))
    keyboard.types(b"a;b\n")
    assert keyboard.reads(9, 9) == [b"a;", b"b\n"]


@pytest.mark.parametrize(
    ("key", "signo", "echoed"),
    [(b"\x03", SIGINT, b"^C"), (b"\x1c", SIGQUIT, b"^\\"), (b"\x1a", SIGTSTP, b"^Z")],
    ids=["interrupt", "quit", "suspend"],
)
def test_signal_keys_send_signals_and_drop_what_was_typed(
    keyboard: Keyboard, key: bytes, signo: int, echoed: bytes
) -> None:
    keyboard.types(b"line\npart")
    assert keyboard.types(key) == echoed
    assert keyboard.sent == [signo]
    keyboard.types(b"x\n")
    assert keyboard.reads() == [b"x\n"]


def test_noflsh_keeps_what_was_typed(keyboard: Keyboard) -> None:
    keyboard.set_flags(lflag_on=NOFLSH)
    keyboard.types(b"kept\x03!\n")
    assert keyboard.sent == [SIGINT]
    assert keyboard.reads() == [b"kept!\n"]


def test_signal_keys_are_bytes_without_isig(keyboard: Keyboard) -> None:
    keyboard.set_flags(lflag_off=ISIG)
    assert keyboard.types(b"\x03\n") == b"^C\r\n"
    assert keyboard.sent == []
    assert keyboard.reads() == [b"\x03\n"]


def test_without_echo_nothing_is_shown_but_newlines_if_asked(keyboard: Keyboard) -> None:
    keyboard.set_flags(lflag_off=ECHO)
    assert keyboard.types(b"secret\x7f\x15\x16a\x12\n") == b""
    keyboard.set_flags(lflag_on=ECHONL)
    assert keyboard.types(b"secret\n") == b"\r\n"


@pytest.mark.parametrize(
    ("flags", "typed", "read"),
    [
        (ICRNL, b"a\r", b"a\n"),
        (IGNCR, b"a\r\n", b"a\n"),
        (INLCR, b"a\nb\n\x04", b"a\rb\r"),
        (ISTRIP | ICRNL, b"\xe1\r", b"a\n"),
    ],
)
def test_input_translation(keyboard: Keyboard, flags: int, typed: bytes, read: bytes) -> None:
    keyboard.termios.iflag = flags
    keyboard.types(typed)
    assert keyboard.reads() == [read]


@pytest.mark.parametrize(
    ("flags", "shown"),
    [(OPOST | ONLCR, b"a\r\nb\rc"), (OPOST, b"a\nb\rc"), (ONLCR, b"a\nb\rc"),
     (OPOST | OCRNL, b"a\nb\nc")],
)  # fmt: skip
def test_output_translation(keyboard: Keyboard, flags: int, shown: bytes) -> None:
    keyboard.termios.oflag = flags
    assert keyboard.process_output(b"a\nb\rc") == shown


def test_stop_and_start_are_swallowed_and_suspend_output(keyboard: Keyboard) -> None:
    keyboard.types(b"a\x13b")
    assert keyboard.output_stopped
    keyboard.types(b"\x11c\n")
    assert not keyboard.output_stopped
    assert keyboard.reads() == [b"abc\n"]


def test_any_key_restarts_output_only_with_ixany_but_an_interrupt_always(
    keyboard: Keyboard,
) -> None:
    keyboard.types(b"\x13x")
    assert keyboard.output_stopped
    keyboard.types(b"\x03")
    assert not keyboard.output_stopped
    keyboard.termios.iflag |= IXANY
    keyboard.types(b"\x13x")
    assert not keyboard.output_stopped


# Raw mode.


def test_raw_input_is_readable_at_once_and_unchanged(raw: Keyboard) -> None:
    raw.termios.iflag = 0
    raw.termios.lflag = 0
    assert raw.types(b"\x03\x04\r\n\x7f\xff\x00") == b""
    assert raw.reads() == [b"\x03\x04\r\n\x7f\xff\x00"]


@pytest.mark.parametrize("count", [3, 10])
def test_vmin_bytes_must_have_come(raw: Keyboard, count: int) -> None:
    raw.set_control(VMIN, 3)
    raw.types(b"ab")
    assert raw.reads(count) == [None]
    assert not raw.readable()
    raw.types(b"c")
    assert raw.readable()
    assert raw.reads(count) == [b"abc"]


def test_a_read_of_fewer_than_vmin_bytes_needs_only_those(raw: Keyboard) -> None:
    raw.set_control(VMIN, 3)
    raw.types(b"ab")
    assert raw.reads(2) == [b"ab"]


def test_vmin_and_vtime_zero_never_wait(raw: Keyboard) -> None:
    raw.set_control(VMIN, 0)
    assert raw.reads() == [b""]
    raw.set_control(VTIME, 1)
    assert raw.reads() == [None]


def test_with_vtime_one_byte_is_readable(raw: Keyboard) -> None:
    raw.set_control(VMIN, 3)
    raw.set_control(VTIME, 1)
    raw.types(b"a")
    assert raw.readable()
    assert raw.reads() == [None]
    assert raw.take_now(10) == b"a"


def test_switching_to_raw_makes_a_half_typed_line_readable(keyboard: Keyboard) -> None:
    keyboard.types(b"done\nhalf")
    keyboard.set_flags(lflag_off=ICANON)
    assert keyboard.reads() == [b"done\nhalf"]


def test_switching_to_canonical_makes_one_line_of_what_was_typed(raw: Keyboard) -> None:
    raw.types(b"raw1\nraw2")
    raw.set_flags(lflag_on=ICANON)
    assert raw.readable()
    assert raw.reads(100, 100) == [b"raw1\nraw2", None]


# Bounds.


def test_a_line_holds_4095_bytes_and_its_end(keyboard: Keyboard) -> None:
    assert len(keyboard.types(b"x" * 5000)) == 4095
    keyboard.types(b"\n")
    assert keyboard.reads(10_000) == [b"x" * 4095 + b"\n"]


def test_complete_lines_that_nobody_reads_hold_further_input_back(keyboard: Keyboard) -> None:
    data = b"0123456789\n" * 1000
    taken, _, _ = keyboard.receive(data)
    assert taken < TERMINAL_INPUT_MAX + 11
    line = keyboard.take(100)
    assert line == b"0123456789\n"
    assert keyboard.receive(data[taken:])[0] == len(line)


def test_raw_input_that_nobody_reads_holds_further_input_back(raw: Keyboard) -> None:
    assert raw.receive(b"x" * 10_000)[0] == 4095


def test_ends_of_file_that_nobody_reads_are_bounded(keyboard: Keyboard) -> None:
    assert keyboard.receive(b"\x04" * 10_000)[0] <= TERMINAL_INPUT_MAX


# Settings.


def test_settings_have_linuxs_layout(keyboard: Keyboard) -> None:
    packed = keyboard.termios.pack()
    assert len(packed) == 36
    _, oflag, _, lflag, line, cc = struct.unpack("<4IB19s", packed)
    assert (oflag, line) == (OPOST | ONLCR, 0)
    assert lflag & (ICANON | ECHO | ISIG) == ICANON | ECHO | ISIG
    assert cc[:8] == bytes([3, 28, 127, 21, 4, 0, 1, 0])


@pytest.mark.parametrize("filler", [b"\x00", b"\xff", b"\x7f"])
def test_any_settings_can_be_set_and_used(keyboard: Keyboard, filler: bytes) -> None:
    keyboard.change(filler * Termios.SIZE)
    assert keyboard.termios.pack() == filler * Termios.SIZE
    keyboard.receive(bytes(range(256)))
    keyboard.process_output(bytes(range(256)))
    keyboard.take(100)
