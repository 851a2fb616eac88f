"""hostname, without a network."""

from __future__ import annotations

from userland.recipes.script_tables import prints
from wasmsand import Sandbox

test_names = prints(
    ("hostname", "sandbox\n"),
    ("hostname -s", "sandbox\n"),
    ("hostname -f", "sandbox\n"),
    ("hostname -i", "127.0.1.1\n"),
    ("hostname -I", "\n"),  # all addresses but those of loopback
    ("domainname", "(none)\n"),
    ("hostname -d; dnsdomainname; echo $?", "0\n"),
    ("[ $(hostname) = $(uname -n) ] && echo same", "same\n"),
)


def test_only_root_may_set_it(sandbox: Sandbox) -> None:
    result = sandbox.commands.run("hostname other; echo $?; hostname")
    assert result.stdout == "1\nsandbox\n"
    assert result.stderr == "hostname: you must be root to change the host name\n"
