"""What a program, or a model, finds when it looks around."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from wasmsand import Sandbox


@pytest.fixture(scope="module")
def explored() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("whoami; hostname; pwd", "user\nsandbox\n/home/user\n"),
        ("id", "uid=1000(user) gid=1000(user) groups=1000(user),100(users)\n"),
        ("uname -sm; arch", "Linux wasm32\nwasm32\n"),
        (". /etc/os-release; echo $ID", "wasmsand\n"),
        ("getent hosts sandbox", "127.0.1.1       sandbox\n"),
        ("date +%Z; cat /etc/timezone", "UTC\nEtc/UTC\n"),
        ("locale | head -1; echo ä | wc -m", "LANG=C.UTF-8\n2\n"),
        ("test $(nproc) = $(python3 -c 'import os; print(os.cpu_count())') && echo same", "same\n"),
        ("df --output=size -m / | tail -1", "      256\n"),
        ("free -m | awk '/Mem/ {print $2}'", "1024\n"),
        ("readlink /proc/self/exe", "/usr/bin/readlink\n"),
        ("ls -l /proc/self/exe | sed 's/.*-> //'", "/usr/bin/ls\n"),
        ("bash -c 'readlink /proc/$$/exe; true'", "/usr/bin/bash\n"),
        ("stat -c %U ~ /opt /srv /usr/local/lib /etc", "user\nuser\nuser\nuser\nroot\n"),
        ("ls -A ~ /opt /srv | grep -v :", "\n\n"),
        ("ls -l /usr/bin/sudo | cut -c1-10", "-rwsr-xr-x\n"),
    ],
)
def test_the_machine_describes_itself(explored: Sandbox, script: str, printed: str) -> None:
    result = explored.commands.run(script)
    assert (result.stdout, result.stderr) == (printed, "")


def test_what_is_installed_by_hand_is_found(explored: Sandbox) -> None:
    script = """
    printf '#!/bin/sh\\necho mine\\n' > /usr/local/bin/mine && chmod +x /usr/local/bin/mine && mine
    mkdir -p /opt/tool/bin && cp /usr/local/bin/mine /opt/tool/bin/other && /opt/tool/bin/other"""
    assert explored.commands.run(script).stdout == "mine\nmine\n"


def test_an_environment_of_python_has_packages_of_its_own(explored: Sandbox) -> None:
    script = """
    python3 -m venv env && . env/bin/activate && pip install -q six &&
    python -c 'import six, sys; print(six.__file__.startswith(sys.prefix), sys.prefix)'
    deactivate; python3 -c 'import six' 2>&1 | tail -1"""
    assert explored.commands.run(script).stdout == (
        "True /home/user/env\nIt is available: pip install six\n"
    )
