"""The small tools of util-linux."""

from __future__ import annotations

import re

import pytest

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

CALENDAR = """\
    February 2024   
Su Mo Tu We Th Fr Sa
             1  2  3
 4  5  6  7  8  9 10
11 12 13 14 15 16 17
18 19 20 21 22 23 24
25 26 27 28 29      
                    
"""  # noqa: W291, W293


test_output = prints(
    (
        "printf 'hello\\n' | hexdump -C",
        "00000000  68 65 6c 6c 6f 0a                                 |hello.|\n00000006\n",
    ),
    ("printf AB | hd | head -n 1 | cut -c-15", "00000000  41 42\n"),
    ("printf '\\1\\2' | hexdump -v -e '1/1 \"%02x.\"'", "01.02."),
    (
        "head -c 64 /dev/zero | hexdump",
        "0000000 0000 0000 0000 0000 0000 0000 0000 0000\n*\n0000040\n",
    ),
    ("printf 'a b c\\nlong d e\\n' | column -t", "a     b  c\nlong  d  e\n"),
    ("printf 'n,v\\nx,1\\n' | column -t -s, -o' | '", "n | v\nx | 1\n"),
    (
        "printf 'a:1\\nb:2\\n' | column -t -s: -N name,value -J | tr -d ' \\n\\t'",
        '{"table":[{"name":"a","value":"1"},{"name":"b","value":"2"}]}',
    ),
    ("seq 6 | column -c 20 -x", "1\t2\n3\t4\n5\t6\n"),
    ("printf 'abc\\näöü\\n' | LC_ALL=C.UTF-8 rev", "cba\nüöä\n"),
    ("cal 2 2024", CALENDAR),
    ("cal -m 2 2024 | sed -n 2p", "Mo Tu We Th Fr Sa Su\n"),
    ("cal 13 2024 2>&1; echo $?", "cal: illegal month value: use 1-12\n1\n"),
    ("printf 'abcdef\\n' | colrm 2 4", "aef\n"),
    ("printf 'a\\bab\\n' | col -b", "ab\n"),
    (
        "printf 'apple\\nbanana\\nberry\\n' > w; look b w; look x w; echo $?",
        "banana\nberry\n1\n",
    ),
    ("printf 'a_\\bb\\n' | ul -t dumb", "ab\n"),
    (
        "getopt -o ab: -l long,arg: -- -a -b 'x y' --arg=z rest",
        " -a -b 'x y' --arg 'z' -- 'rest'\n",
    ),
    ("getopt -o a -- -q 2> /dev/null; echo $?", " --\n1\n"),
    ("getopt -T; echo $?", "4\n"),
    ("touch a.txt b.txt; rename .txt .md *.txt; ls", "a.md\nb.md\n"),
    ("whereis -b bash", "bash: /usr/bin/bash\n"),
    ("uuidgen --sha1 -n @dns -N example.org", "aad03681-8b63-5304-89e0-8ca8f49461b5\n"),
    ("fallocate -l 1M f; stat -c %s f", "1048576\n"),
    ("prlimit --nofile=64 sh -c 'ulimit -n'", "64\n"),
)


@pytest.mark.parametrize(
    ("script", "pattern"),
    [
        ("uuidgen", r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n"),
        ("uuidgen -t", r"[0-9a-f]{8}-[0-9a-f]{4}-1[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\n"),
        ("mcookie", r"[0-9a-f]{32}\n"),
        (
            "namei -l /usr/bin/bash",
            r"f: /usr/bin/bash\n(d\S+ root root \S+\n){3}-\S+ root root bash\n",
        ),
        ("hexdump --version", r"hexdump from util-linux 2\.41\.5\n"),
        ("column --help | head -n 3", r"\nUsage:\n column \[options\] \[<file>\.\.\.\]\n"),
    ],
)
def test_output_like(sandbox: Sandbox, script: str, pattern: str) -> None:
    assert re.fullmatch(pattern, sandbox.commands.run(script).stdout)


def test_getopt_in_a_script(sandbox: Sandbox) -> None:
    script = """
    args=$(getopt -o vn: --long verbose,name: -n tool -- --name 'a b' -v x) && eval set -- "$args"
    while [ "$1" != -- ]; do
        case $1 in -v|--verbose) echo verbose;; -n|--name) echo "name=$2"; shift;; esac; shift
    done
    shift; echo "rest=$*"
    """
    assert sandbox.commands.run(script).stdout == "name=a b\nverbose\nrest=x\n"


def test_flock_lets_one_process_in_at_a_time(sandbox: Sandbox) -> None:
    script = """
    echo 0 > n
    add() { for i in 1 2 3 4 5; do flock lock sh -c 'echo $(($(cat n) + 1)) > n'; done; }
    add & add & add & wait; cat n
    """
    assert sandbox.commands.run(script).stdout == "15\n"


def test_flock_gives_up(sandbox: Sandbox) -> None:
    script = """
    flock lock sleep 5 & sleep 0.3
    flock -n lock true; echo $?; flock -w 0.2 -E 9 lock true; echo $?; kill %1
    exec 9> other; flock 9 && echo held; (flock -n other true; echo $?); flock -u 9
    flock -n other echo free; flock -s lock2 flock -s lock2 echo shared
    """
    assert sandbox.commands.run(script).stdout == "1\n9\nheld\n1\nfree\nshared\n"


def test_setsid_leaves_the_session(sandbox: Sandbox) -> None:
    script = (
        "setsid -w sh -c 'read -r _ _ _ _ _ s _ < /proc/self/stat; [ $s = $$ ] && exit 7'; echo $?"
    )
    assert sandbox.commands.run(script).stdout == "7\n"


def test_a_process_of_another_session_outlives_its_shell(sandbox: Sandbox) -> None:
    sandbox.commands.run("setsid -f sh -c 'sleep 0.5; echo done > f'")
    assert sandbox.commands.run("sleep 1.5; cat f").stdout == "done\n"


def test_a_large_table(sandbox: Sandbox) -> None:
    script = "seq 20000 | awk '{ print $1, $1 * 2 }' | column -t | tail -n 1"
    assert sandbox.commands.run(script).stdout == "20000  40000\n"


def test_same_files_are_linked(sandbox: Sandbox) -> None:
    script = "mkdir d; seq 999 | tee d/1 d/2 > d/3; hardlink -q d; stat -c %h d/1"
    assert sandbox.commands.run(script).stdout == "3\n"


def test_script_gives_a_command_a_terminal(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "script -qec 'tty; test -t 0 && stty size; exit 3' log < /dev/null; echo $?; sed 1d log"
    )
    printed = "/dev/pts/0\r\n0 0\r\n"
    assert result.stdout.startswith(f"{printed}3\n{printed}\nScript done on ")
    assert 'COMMAND_EXIT_CODE="3"' in result.stdout


def test_script_passes_input_on(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "printf 'hello\\n' | script -qc 'read -r line; echo got $line' /dev/null"
    )
    assert result.stdout.endswith("got hello\r\n")


def test_a_session_of_script_is_replayed(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "script -q -c 'echo one; sleep 0.2; echo two' -T timing log > /dev/null < /dev/null;"
        "scriptreplay -d 100 -t timing log"
    )
    assert result.stdout == "one\r\ntwo\r\n\n"
