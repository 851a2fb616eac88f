"""curl and wget over TLS: whom they trust, and HTTP/2."""

from __future__ import annotations

import pytest

from userland.recipes.guest_server import start_web_server
from wasmsand import Sandbox

URL = "https://localhost:8443"


@pytest.fixture
def served(sandbox: Sandbox) -> Sandbox:
    """A sandbox with a web server whose authority is private."""
    start_web_server(sandbox, 8443, tls=True)
    return sandbox


def run(sandbox: Sandbox, script: str) -> tuple[str, str, int]:
    result = sandbox.commands.run(f"U={URL}\n{script}")
    return result.stdout, result.stderr, result.exit_code


@pytest.mark.parametrize(
    "script",
    [
        "curl -sS --cacert authority.pem $U/status/200",
        "CURL_CA_BUNDLE=authority.pem curl -sS $U/status/200",
        "SSL_CERT_FILE=authority.pem curl -sS $U/status/200",
        "curl -sS --cacert authority.pem https://127.0.0.1:8443/status/200",
        "curl -sSk $U/status/200",
        "wget -q -O- --ca-certificate=authority.pem $U/status/200",
        "wget -q -O- --no-check-certificate $U/status/200",
    ],
)
def test_a_server_whose_authority_is_named_is_trusted(served: Sandbox, script: str) -> None:
    assert run(served, script) == ("status\n", "", 0)


def test_a_server_of_an_unknown_authority_is_refused(served: Sandbox) -> None:
    printed, said, status = run(served, "curl -sS $U/status/200")
    assert (printed, status) == ("", 60)
    assert "curl: (60) SSL certificate" in said
    printed, said, status = run(served, "wget -O- $U/status/200")
    assert (printed, status) == ("", 5)
    assert "ERROR: cannot verify localhost's certificate" in said


def test_a_certificate_for_another_name_is_refused(served: Sandbox) -> None:
    other = "--resolve other.example:8443:127.0.0.1 https://other.example:8443/status/200"
    printed, said, status = run(served, f"curl -sS --cacert authority.pem {other}")
    assert (printed, status) == ("", 60)
    assert "no alternative certificate subject name matches target hostname 'other.example'" in said


def test_the_bundle_of_the_image_is_the_default(served: Sandbox) -> None:
    script = "curl -sv $U/ 2>&1 | grep -o 'CAfile: .*'"
    assert run(served, script)[0] == "CAfile: /etc/ssl/certs/ca-certificates.crt\n"


def test_old_versions_of_tls_can_be_asked_for(served: Sandbox) -> None:
    script = "curl -sSv --tls-max 1.2 --cacert authority.pem $U/ 2>&1 | grep -o 'TLSv1.[0-9] /'"
    assert run(served, script)[0] == "TLSv1.2 /\n"


def test_a_large_file_arrives_whole(served: Sandbox) -> None:
    script = """seq 300000 > site/big; curl -sS --cacert authority.pem $U/big | cmp - site/big
    wget -q --ca-certificate=authority.pem $U/big && cmp big site/big
    curl -sS --cacert authority.pem -T big $U/again && cmp big site/again"""
    assert run(served, script) == ("stored\n", "", 0)
