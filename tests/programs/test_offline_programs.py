"""Without a network, programs fail at once, and standard error says that there is none."""

from __future__ import annotations

import time

import pytest

from wasmsand import Sandbox

_PYTHON = "python3 -c 'import {}'"
PROGRAMS = {
    "socket": _PYTHON.format('socket; socket.create_connection(("host.test", 80))'),
    "urllib": _PYTHON.format('urllib.request as u; u.urlopen("https://host.test/")'),
    "requests": _PYTHON.format('requests; requests.get("https://host.test/")'),
    "getent": "getent hosts host.test",
    "host": "host host.test",
    "nslookup": "nslookup host.test",
    "nc": "nc -zv host.test 80",
    "curl": "curl -sS https://host.test/",
    "wget": "wget https://host.test/",
    "git": "git clone https://host.test/a.git",
    "git of another protocol": "git clone git://host.test/a.git",
    "bash": "echo > /dev/tcp/host.test/80",
    "telnet": "telnet host.test 80",
    "openssl": "openssl s_client -connect host.test:443",
    "pip with an index": "pip install --index-url https://host.test/simple nonesuch",
}
ADDRESSES = {
    "socket": _PYTHON.format('socket; socket.create_connection(("203.0.113.1", 80))'),
    "nc": "nc -zv 203.0.113.1 80",
    "curl": "curl -sS http://203.0.113.1/",
    "wget": "wget -T 5 -t 1 http://203.0.113.1/",
    "bash": "echo > /dev/tcp/203.0.113.1/80",
}
_PATIENCE_SECONDS = 10
"""Far more than a program takes, also on a busy host, and less than two looks-up that wait."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_fails_at_once(name: str) -> None:
    with Sandbox(packages=["requests"]) as sandbox:
        began = time.monotonic()
        result = sandbox.commands.run(PROGRAMS[name])
        assert time.monotonic() - began < _PATIENCE_SECONDS
    assert result.exit_code != 0
    assert (
        "wasmsand: network: look-up of host.test refused: the sandbox has no network "
        "(option network)\n"
    ) in result.stderr


@pytest.mark.parametrize("name", ADDRESSES)
def test_an_address_fails_at_once(name: str) -> None:
    with Sandbox() as sandbox:
        began = time.monotonic()
        result = sandbox.commands.run(ADDRESSES[name])
        assert time.monotonic() - began < _PATIENCE_SECONDS
    assert result.exit_code != 0
    assert result.stderr.endswith(
        "wasmsand: network: connection to 203.0.113.1:80 refused: the sandbox has no network "
        "(option network)\n"
    )


def test_pip_names_what_is_there_and_does_not_complain_about_the_network() -> None:
    with Sandbox() as sandbox:
        result = sandbox.commands.run("pip install six")
        assert (result.exit_code, result.stderr) == (0, "")
        result = sandbox.commands.run("pip install nonesuch")
    assert result.exit_code == 1
    assert "ERROR: Package not found: nonesuch. Available: " in result.stderr
    assert "wasmsand:" not in result.stderr


def test_a_session_says_it_too() -> None:
    with Sandbox() as sandbox, sandbox.shell() as shell:
        assert "the sandbox has no network" in shell.run("curl -sS https://host.test/").stderr
        assert shell.run("true").stderr == ""
