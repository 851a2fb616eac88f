"""openssl: keys, certificates, digests and ciphers as scripts use them, and TLS between two
processes. What is the same at every run is compared with the native program in
tests/differential/cases/openssl.sh."""

from __future__ import annotations

from wasmsand import Sandbox

CERTIFICATE = (
    "openssl req -x509 -newkey rsa:2048 -noenc -keyout key.pem -out cert.pem -days 30 "
    "-subj '/O=Test/CN=localhost' -addext 'subjectAltName=DNS:localhost' 2> log || cat log\n"
)


def run(sandbox: Sandbox, script: str) -> str:
    """What a script prints that must go well."""
    result = sandbox.commands.run(script)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_a_certificate_is_made_and_verified(sandbox: Sandbox) -> None:
    shown = run(
        sandbox,
        CERTIFICATE + "openssl x509 -in cert.pem -noout -subject -ext subjectAltName\n"
        "openssl verify -CAfile cert.pem cert.pem; openssl rsa -in key.pem -check -noout",
    )
    assert shown == (
        "subject=O=Test, CN=localhost\nX509v3 Subject Alternative Name: \n    DNS:localhost\n"
        "cert.pem: OK\nRSA key ok\n"
    )


def test_random_numbers_are_fresh_in_every_process(sandbox: Sandbox) -> None:
    numbers = run(sandbox, "for i in 1 2 3 4; do openssl rand -hex 16; done").split()
    assert len(set(numbers)) == 4
    assert {len(number) for number in numbers} == {32}


def test_a_signature_is_that_of_its_message_alone(sandbox: Sandbox) -> None:
    result = sandbox.commands.run(
        "openssl genpkey -algorithm ED25519 -out key.pem\n"
        "openssl pkey -in key.pem -pubout -out pub; echo message > m; echo other > o\n"
        "openssl pkeyutl -sign -inkey key.pem -rawin -in m -out s\n"
        "for f in m o; do openssl pkeyutl -verify -pubin -inkey pub -rawin -in $f -sigfile s; done"
    )
    assert result.stdout == "Signature Verified Successfully\nSignature Verification Failure\n"


def test_tls_between_two_processes(sandbox: Sandbox) -> None:
    sandbox.commands.run(CERTIFICATE)
    result = sandbox.commands.run(
        "openssl s_server -accept 127.0.0.1:4433 -key key.pem -cert cert.pem -naccept 1 -rev "
        "> server.log 2>&1 &\n"
        "until grep -q ACCEPT server.log; do sleep 0.05; done\n"
        "(echo hello; sleep 1) | openssl s_client -connect 127.0.0.1:4433 -servername localhost "
        "-verify_hostname localhost -CAfile cert.pem -verify_return_error -brief 2> client.log\n"
        "grep -E 'Protocol version|Verification' client.log"
    )
    assert result.stdout == "olleh\nProtocol version: TLSv1.3\nVerification: OK\n"
