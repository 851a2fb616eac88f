"""The shell: what needs fork, signals, job control and readline."""

from __future__ import annotations

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


def test_error_is_told_as_on_linux(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("no-such-command")
    assert result.exit_code == 127
    assert "no-such-command: command not found" in result.stderr
