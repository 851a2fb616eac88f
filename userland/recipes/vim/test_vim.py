"""vim: as a script runs it, and as somebody at a terminal; xxd."""

from __future__ import annotations

import itertools

from userland.recipes.screen import Screen
from userland.recipes.script_tables import prints
from wasmsand.machine import Machine

test_scripts = prints(
    ("printf 'a\\nb\\n' > f; vim -es -c '%s/a/x/' -c wq f; cat f", "x\nb\n"),
    ("seq 5 > f; ex -s f <<< $'2,3d\\n$a\\nend\\n.\\nwq'; cat f", "1\n4\n5\nend\n"),
    ("seq 3 > f; vi -es -c 'g/2/normal Aö' -c x f; cat f", "1\n2ö\n3\n"),
    ("seq 9 > f; vim -es -c '%!sort -r' -c wq f; head -n 2 f", "9\n8\n"),
    ("seq 200000 > f; vim -es -c '%s/$/x/' -c wq f; tail -n 1 f", "200000x\n"),
    ("echo a > f; view -es -c 's/a/b/' -c 'wq' f; cat f", "a\n"),
    ("vim --version | head -n 1 | cut -c-21", "VIM - Vi IMproved 9.1\n"),
    ("vim --version | grep -c 'Tiny version'", "1\n"),
    ("vim --version | grep -A 9 ^Compilation", "Compilation: wasm-cc\nLinking: wasm-cc\n"),
)


def test_a_file_is_opened_changed_saved_and_left(machine: Machine) -> None:
    machine.files.write("/home/user/f", b"one\ntwo\nthree\n")
    with Screen(machine, "vim f") as screen:
        screen.wait_until(lambda lines: lines[:4] == ["one", "two", "three", "~"])
        screen.type("jdwihello \x1b")
        screen.wait_until(lambda lines: lines[1] == "hello")
        screen.type("/thr\rcwfour\x1b")
        screen.wait_until(lambda lines: lines[2] == "four")
        screen.type("u")
        screen.wait_until(lambda lines: lines[2] == "three")
        screen.type("Go\x1b[D\x1bo\u00e4 \u2713\x7f!\x1b:wq\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f").decode() == "one\nhello \nthree\n\n\u00e4 !\n"


def test_arrow_keys_in_insert_mode_and_backspace_over_line_ends(machine: Machine) -> None:
    machine.files.write("/home/user/f", b"ab\ncd\n")
    with Screen(machine, "vi f") as screen:
        screen.wait_until(lambda lines: lines[:2] == ["ab", "cd"])
        screen.type("i\x1bOB\x1bOC")
        screen.type("X\x7f\x7f\x7f")
        screen.wait_until(lambda lines: lines[0] == "abd")
        screen.type("\x1b:x\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f") == b"abd\n"


def test_leaving_without_saving(machine: Machine) -> None:
    machine.files.write("/home/user/f", b"kept\n")
    with Screen(machine, "vim f") as screen:
        screen.wait_until(lambda lines: lines[0] == "kept")
        screen.type("dd:q\r")
        screen.wait_for("E37: No write since last change")
        screen.type(":q!\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f") == b"kept\n"


def test_windows_and_commands_of_the_shell(machine: Machine) -> None:
    with Screen(machine, "vim") as screen:
        screen.wait_for("VIM - Vi IMproved")
        screen.type(":r !seq 3\r")
        screen.wait_until(lambda lines: lines[1:4] == ["1", "2", "3"])
        screen.type(":split\r")
        screen.wait_until(lambda lines: sum("[No Name] [+]" in line for line in lines) == 2)
        screen.type(":!echo $((6*7))\r")
        screen.wait_for("42")
        screen.type("\r:qa!\r")
        assert screen.wait_for_exit() == 0


test_xxd = prints(
    ("printf 'hello\\n' | xxd", "00000000: 6865 6c6c 6f0a                           hello.\n"),
    ("printf abc | xxd -p", "616263\n"),
    ("echo 616263 | xxd -r -p", "abc"),
    ("printf AB | xxd -b | cut -c-27", "00000000: 01000001 01000010\n"),
    (
        "printf hi > f; xxd -i f",
        "unsigned char f[] = {\n  0x68, 0x69\n};\nunsigned int f_len = 2;\n",
    ),
    ("seq 99 > f; xxd f | xxd -r | cmp - f && echo same", "same\n"),
    ("seq 9 | xxd -s 4 -l 4 -g 1 | cut -c-21", "00000004: 33 0a 34 0a\n"),
    ("head -c 3000000 /dev/urandom > r; xxd -p r | xxd -r -p | cmp - r && echo same", "same\n"),
)


def test_a_slow_clock_does_not_make_it_wait_for_another_key(machine: Machine) -> None:
    """Where vim only looks for a key, it must not wait if time passes between two readings of the
    clock, as on a busy machine."""
    clock = machine.kernel.clock
    readings = itertools.count()
    start = clock.realtime()
    clock.realtime = lambda: start + 2_000_000 * next(readings)
    with Screen(machine, "vim f") as screen:
        screen.wait_for("[New]")
        screen.type("itext\x1b:wq\r")
        assert screen.wait_for_exit() == 0
    assert machine.files.read("/home/user/f") == b"text\n"
