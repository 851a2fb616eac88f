"""The shell: what needs fork, signals, job control and readline."""

from __future__ import annotations

import pytest

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_script_prints = prints(
    ("echo $BASH_VERSION", "5.3.0(1)-release\n"),
    ("(echo in; exit 3); echo $?", "in\n3\n"),
    ("echo $(echo a; echo b)", "a b\n"),
    ("for i in 1 2 3; do echo $i; done | tac", "3\n2\n1\n"),
    ("x=1; (x=2); echo $x", "1\n"),
    ("f() { local n=$1; ((n)) && f $((n-1)); echo $n; }; f 3", "0\n1\n2\n3\n"),
    ("exit_on() { return 7; }; exit_on; echo $?", "7\n"),
    ("cat <(echo left) <(echo right)", "left\nright\n"),
    ("declare -A m=([k]=v); echo ${m[k]} ${!m[@]}", "v k\n"),
    ("[[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo ${BASH_REMATCH[2]}", "123\n"),
    ("trap 'echo caught' USR1; kill -USR1 $$; echo after", "caught\nafter\n"),
    ("trap 'echo bye' EXIT; echo hi", "hi\nbye\n"),
    ("set -o pipefail; false | true; echo $?", "1\n"),
    ("sleep 0.05 & wait $!; echo $?", "0\n"),
    ("set -m; sleep 10 & kill %1; wait %1 2>/dev/null; echo $?", "143\n"),
    ("coproc { read x; echo got $x; }; echo y >&${COPROC[1]}; cat <&${COPROC[0]}", "got y\n"),
    ("cat <<< 'here string'", "here string\n"),
    ("printf '%s\\n' {a..c}{1..2}", "a1\na2\nb1\nb2\nc1\nc2\n"),
    ("echo ${| REPLY=value; }", "value\n"),
    ("type -t bind complete fg", "builtin\nbuiltin\nbuiltin\n"),
    ("sh -c 'echo $0'", "sh\n"),
)


test_only_interactive_shells_read_bash_bashrc = prints(
    ("echo [$PS1]; alias; shopt histappend | tr -d '\\t '", "[]\nhistappendoff\n"),
    ("bash -lc 'echo [$PS1]; alias'", "[]\n"),
    ("bash --norc -ic alias 2>/dev/null", ""),
    ("bash -ic 'alias ll' 2>/dev/null", "alias ll='ls -alF'\n"),
    ("TERM=xterm bash -ic 'alias ls' 2>/dev/null", "alias ls='ls --color=auto'\n"),
    ("TERM=xterm NO_COLOR=1 bash -ic 'alias ls; echo \"$PS1\"' 2>/dev/null", "\\u@\\h:\\w\\$ \n"),
    ("echo 'alias ll=mine' > .bashrc; bash -ic 'alias ll' 2>/dev/null", "alias ll='mine'\n"),
    ("bash -lic 'alias ll' 2>/dev/null", "alias ll='ls -alF'\n"),
)


def test_error_is_told_as_on_linux(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("no-such-command")
    assert result.exit_code == 127
    assert "no-such-command: command not found" in result.stderr


def test_an_absent_program_that_is_known_has_a_hint(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("node -v")
    assert result.exit_code == 127
    first, second = result.stderr.splitlines()
    assert first == "/bin/bash: line 1: node: command not found"
    assert second.startswith("hint: there is no Node.js: run JavaScript with `qjs FILE.js`")


def test_an_unknown_name_has_none(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("no-such-program")
    assert result.exit_code == 127
    assert result.stderr == "/bin/bash: line 1: no-such-program: command not found\n"


def test_absent_programs_are_not_found(sandbox: Sandbox) -> None:
    script = (
        "command -v node gcc apt-get; which docker 2>/dev/null; type -P npm; hash go 2>/dev/null"
    )
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr, result.exit_code) == ("", "", 1)


def test_a_handler_of_the_user_replaces_the_hint(sandbox: Sandbox) -> None:
    script = "command_not_found_handle() { echo mine $1; return 5; }; node; echo $?"
    result = sandbox.commands.run(script)
    assert (result.stdout, result.stderr) == ("mine node\n5\n", "")


def test_hints_name_only_absent_programs_and_each_once(sandbox: Sandbox) -> None:
    lines = sandbox.files.read_text("/usr/share/wasmsand/hints").splitlines()
    assert max(len(line.encode()) for line in lines) < 1000  # what bash reads at once
    names = [name for line in lines for name in line.partition("\t")[0].split(" ")]
    assert len(names) == len(set(names)) > 100
    assert all(line.partition("\t")[2] for line in lines)
    assert sandbox.commands.run(["which", *names]).stdout == ""


@pytest.mark.parametrize(
    "advice",
    [
        "qjs -e 'print(1)'",
        "pip install six",
        "pip list",
        "ls /usr/bin",
        "python3 -m venv v",
        "cat /etc/os-release",
        "python3 -m http.server 8000 & sleep 1; nc -zv localhost 8000; kill $!",
        "grep -rn a /etc/passwd",
        "sqlite3 x.db 'select 1'",
        "lua -e 'print(1)'",
        "top -bn1",
        "mkdir s t; cp -a s/. t; tar -C s -cf - . | tar -C t -xf -",
    ],
)
def test_what_hints_advise_works(sandbox: Sandbox, advice: str) -> None:
    result = sandbox.commands.run(advice)
    assert result.exit_code == 0, result.stderr


def test_a_session_runs_scripts_and_reports_their_status(sandbox: Sandbox) -> None:
    """Requests come from one descriptor, reports go to another: see session.c."""
    scripts = (
        "cd /tmp; x=kept; false\n",
        "echo $? $x $PWD; (exit 3)\n",
        "if then\n",
        "exec > log\n",
    )
    requests = b"".join(
        b"%016d %08x %05x\n%s" % (number, len(script), 0, script.encode())
        for number, script in enumerate(scripts)
    )
    requests += b"%016d %08x %05x\n%s%s" % (9, 4, 6, b"/tmp/f", b"cat\n")
    sandbox.files.write("/tmp/f", "the input\n")
    sandbox.files.write("/tmp/requests", requests)
    result = sandbox.commands.run(
        "bash --norc --session 100,103 -i 100< /tmp/requests 103> /tmp/reports"
    )
    assert result.stdout == "1 kept /tmp\nthe input\n"
    assert sandbox.files.read_text("/tmp/reports").split("\n\n") == [
        "\n0000000000000000 1",
        "0000000000000001 3",
        "0000000000000002 2",
        "0000000000000003 0",
        "0000000000000009 0\n",
    ]
