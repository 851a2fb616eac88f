"""nc: both ends of connections, with OpenBSD's options and those of others."""

from __future__ import annotations

import pytest

from wasmsand import Sandbox


def run(sandbox: Sandbox, script: str) -> tuple[str, str]:
    result = sandbox.commands.run(script)
    return result.stdout, result.stderr


@pytest.mark.parametrize(
    "listening", ["-l 8080", "-l -p 8080", "-lp 8080", "-l -s 127.0.0.1 -p 8080"]
)
def test_two_processes_talk(sandbox: Sandbox, listening: str) -> None:
    script = (
        f"echo from the server | nc -N {listening} > got &\n"
        "until echo from the client | nc -N 127.0.0.1 8080 2> /dev/null; do sleep 0.05; done\n"
        "wait; cat got"
    )
    assert run(sandbox, script) == ("from the server\nfrom the client\n", "")


def test_ports_are_scanned(sandbox: Sandbox) -> None:
    script = (
        "nc -lk 8081 & until nc -z 127.0.0.1 8081; do sleep 0.05; done\n"
        "nc -zv 127.0.0.1 8081; nc -zv -w 1 localhost 8080-8082; echo $?; kill $!"
    )
    printed, said = run(sandbox, script)
    assert printed == "0\n"
    assert "Connection to 127.0.0.1 8081 port [tcp/*] succeeded!\n" in said
    assert "localhost (127.0.0.1) port 8080 (tcp) failed: Connection refused\n" in said
    assert run(sandbox, "nc -z 127.0.0.1 8099; echo $?") == ("1\n", "")


def test_a_server_is_kept_for_several_clients(sandbox: Sandbox) -> None:
    # After each client, nc listens anew, and the system resets connections that waited: so clients
    # repeat.
    script = (
        "nc -lk 8082 > got & for i in 1 2 3; do\n"
        "    until grep -qx $i got; do echo $i | nc -N 127.0.0.1 8082; sleep 0.1; done\n"
        "done; kill $!; sort -u got"
    )
    assert run(sandbox, script)[0] == "1\n2\n3\n"


def test_datagrams_and_unix_sockets(sandbox: Sandbox) -> None:
    script = (
        "nc -U -l s > one & until test -S s; do sleep 0.05; done; echo unix | nc -N -U s; wait\n"
        "nc -u -l 8083 > two & sleep 0.3; echo datagram | nc -u -w 1 127.0.0.1 8083\n"
        "until [ -s two ]; do sleep 0.05; done; kill $!; cat one two"
    )
    assert run(sandbox, script)[0] == "unix\ndatagram\n"


def test_a_request_of_http_is_typed(sandbox: Sandbox) -> None:
    script = (
        "python3 -m http.server 8084 2> /dev/null &\n"
        "until nc -z 127.0.0.1 8084; do sleep 0.05; done\n"
        "printf 'HEAD / HTTP/1.0\\r\\n\\r\\n' | nc -w 3 127.0.0.1 8084 | head -1; kill $!"
    )
    assert run(sandbox, script)[0] == "HTTP/1.0 200 OK\r\n"


def test_a_program_answers(sandbox: Sandbox) -> None:
    script = (
        "nc -lk -p 8085 -e cat & until nc -z 127.0.0.1 8085 2> /dev/null; do sleep 0.05; done\n"
        "echo echoed | nc -N 127.0.0.1 8085; kill $!"
    )
    assert run(sandbox, script)[0] == "echoed\n"


def test_errors_and_help(sandbox: Sandbox) -> None:
    assert "usage: nc " in run(sandbox, "nc")[1]
    assert "usage: nc " in run(sandbox, "nc -h")[1]
    assert "openssl s_client" in run(sandbox, "nc -c example.com 443")[1]
    assert run(sandbox, "nc 10.0.0.1 80 < /dev/null; echo $?")[0] == "1\n"
