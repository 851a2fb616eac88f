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


test_a_program_starts_from_wherever_bash_is = prints(
    (
        "exec 2>/dev/null; set -e; trap 'echo $(echo bye)' EXIT; readonly r=1; r=2; echo no",
        "bye\n",
    ),
    ("exec 2>/dev/null; set -u; trap 'echo $(echo bye)' EXIT; echo ${a[$nothing]}", "bye\n"),
    ("exec 2>/dev/null; set -e; trap 'echo $(echo bye)' EXIT; x=$((1/0))", "bye\n"),
    ("trap 'echo $(echo debug)' DEBUG; :", "debug\n"),
    ("trap 'echo $(echo err)' ERR; f() { local x; false; }; f; :", "err\n"),
    ("trap 'echo $(echo back)' RETURN; f() { :; }; declare -ft f; f", "back\n"),
    ("trap 'echo $(echo usr)' USR1; kill -USR1 $$; :", "usr\n"),
    (
        "trap 'echo $(echo int)' INT; read x < <(kill -INT $$; sleep 0.2; echo y); echo $x",
        "int\ny\n",
    ),
    ("exec 2>/dev/null; trap 'echo $(echo child)' CHLD; sleep 0.05 & wait; :", "child\n"),
    ("declare -A m; m[$(echo k)]=$(echo v); echo ${m[$(echo k)]}", "v\n"),
    ("declare -i RANDOM; a=(1 2); RANDOM='a[$(echo 1)]'; echo $?", "0\n"),
    ("a=([$(echo 1)]=x [$((1+$(echo 1)))]=y); echo ${!a[@]}", "1 2\n"),
    ("i='a[$(echo 0)]'; a=(7); echo $((i + 1)) $((a[$(echo 0)]++))", "8 7\n"),
    ("printf -v \"a[$(echo 2)]\" %s x; read 'a[$(echo 3)]' <<< y; echo ${!a[@]}", "2 3\n"),
    ("unset 'a[$(echo 1)]'; [[ -v a[$(echo 0)] ]]; echo $?", "1\n"),
    ("c() { echo $1 $(echo $2); }; mapfile -t -c1 -C c <<< x", "0 x\n"),
    ("c() { COMPREPLY=($(echo one two)); }; compgen -F c 2>/dev/null", "one\ntwo\n"),
    ("compgen -C 'echo from-a-command' 2>/dev/null", "from-a-command compgen  \n"),
    ("compgen -W '$(echo a b)'", "a\nb\n"),
    ("command_not_found_handle() { echo $(echo no $1); }; nowhere", "no nowhere\n"),
    ("source <(echo 'echo $(echo sourced)')", "sourced\n"),
    ("eval 'eval \"echo \\$(echo deep)\"'; builtin command eval 'echo $(echo d)'", "deep\nd\n"),
    ("select x in $(echo a b); do echo $(echo $x); break; done <<< 2 2>/dev/null", "b\n"),
    ("echo ${x:-$(echo word)} ${y:=$(echo set)} ${y/$(echo e)/$(echo i)}", "word set sit\n"),
    ("case $(echo a) in $(echo a)) echo $(echo yes);; esac", "yes\n"),
    ("PS4='$(echo +) '; set -x; { : one; } 2>&1", "+ : one\n"),
    ("cat << E\n$(echo in $(echo here))\nE", "in here\n"),
    ("f() { echo $BASH_SUBSHELL; }; (f; (f; echo $(f)))", "1\n2\n3\n"),
    ("bash -lc 'echo \"echo \\$(echo left)\" > ~/.bash_logout; exit'", "left\n"),
    ("trap 'wait' EXIT; { sleep 0.05; echo late; } & exit", "late\n"),
)


def test_a_program_starts_while_a_line_is_edited(sandbox: Sandbox) -> None:
    sandbox.files.write(
        "rc",
        "PS1='$(echo prompt)> '; PROMPT_COMMAND='echo $(echo before)'\n"
        "words() { COMPREPLY=($(echo completed)); }; complete -F words tell\n"
        "bind -x '\"\\C-g\": echo $(echo bound)'\n"
        "tell() { echo told $1; }\n",
    )
    with sandbox.pty("bash --rcfile rc -i", env={"TERM": "dumb"}) as terminal:
        seen = ""

        def expect(text: str) -> None:
            nonlocal seen
            while text not in seen:
                seen += terminal.read(timeout_ms=60_000).decode()
            seen = seen.partition(text)[2]

        expect("before")
        expect("prompt> ")
        terminal.write("tell com\t\n")
        expect("told completed")
        expect("prompt> ")
        terminal.write("\x07")
        expect("bound")
        terminal.write("echo a\necho !!\n")
        expect("echo echo a")
        terminal.write("$(echo 4)\x1b\x05\n")  # shell-expand-line
        expect("4: command not found")
        terminal.write("exit\n")
        assert terminal.wait() == 127


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


def test_reading_lines_leaves_the_rest_of_the_input_to_others(sandbox: Sandbox) -> None:
    script = 'read a; read -r b; mapfile -n 1 -t c; echo "$a|$b|${c[0]}"; cat'
    given = "one\n" + "long " * 2000 + "\nthree\nfour\nfive"
    for command, stdin in ((script, given), (f"cat | {{ {script}; }}", given)):
        result = sandbox.commands.run(command, stdin=stdin)
        assert result.stdout == f"one|{('long ' * 2000).rstrip()}|three\nfour\nfive"
        assert (result.stderr, result.exit_code) == ("", 0)
