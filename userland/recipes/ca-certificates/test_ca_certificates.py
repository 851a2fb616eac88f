"""The bundle of authorities: complete, and found."""

from __future__ import annotations

from wasmsand import Sandbox


def test_the_authorities_are_where_openssl_looks(sandbox: Sandbox) -> None:
    script = (
        "openssl storeutl -noout -certs /etc/ssl/certs/ca-certificates.crt | tail -n 1\n"
        "sed '/END/q' /etc/ssl/certs/ca-certificates.crt > first.pem; openssl verify first.pem"
    )
    result = sandbox.commands.run(script)
    assert (result.exit_code, result.stderr) == (0, "")
    total, verified = result.stdout.splitlines()
    assert int(total.removeprefix("Total found: ")) > 100
    assert verified == "first.pem: OK"
