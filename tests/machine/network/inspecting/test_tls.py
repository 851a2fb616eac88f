"""TLS on both sides of an inspector: whom it trusts, and who trusts it."""

from __future__ import annotations

import ssl
import threading

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import pump, received
from tests.machine.network.inspecting.servers import answering, echo_server, raw_server
from wasmsand.machine.network.inspecting.authority import HOSTS_KEPT, Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context

pytestmark = pytest.mark.no_userland
GET = b"GET /x HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n"


def test_the_guest_and_the_bridge_agree_on_http_1_1(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
        joint.connect_tls() as guest,
    ):
        assert guest.selected_alpn_protocol() == "http/1.1"
        certificate = guest.getpeercert()
    assert certificate is not None
    assert certificate["subjectAltName"] == (("DNS", "api.test"),)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_both_versions_of_tls_are_spoken(
    private_authority: PrivateAuthority, version: ssl.TLSVersion
) -> None:
    context = private_authority.context("api.test")
    context.minimum_version = context.maximum_version = version
    with echo_server(context) as echo, pump(echo.port, ca_file=private_authority.ca_file) as joint:
        guest_context = joint.guest_context()
        guest_context.minimum_version = guest_context.maximum_version = version
        with guest_context.wrap_socket(joint.connect(), server_hostname="api.test") as guest:
            guest.sendall(GET)
            assert received(guest).endswith(b"GET /x 0\n")


@pytest.mark.parametrize(
    ("hosts", "expired", "reason"),
    [
        (("api.test",), True, "certificate has expired"),
        (("other.test",), False, "Hostname mismatch, certificate is not valid for 'api.test'."),
        (("127.0.0.1",), False, "Hostname mismatch, certificate is not valid for 'api.test'."),
    ],
)
def test_a_host_whose_certificate_is_not_valid_gets_no_request(
    private_authority: PrivateAuthority, hosts: tuple[str, ...], expired: bool, reason: str
) -> None:
    with (
        echo_server(private_authority.context(*hosts, expired=expired)) as echo,
        pump(
            echo.port, ca_file=private_authority.ca_file, headers={"Authorization": "Bearer k9"}
        ) as joint,
    ):
        answer = joint.exchange(GET)
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert answer.endswith(f"wasmsand: GET /x: certificate not valid: {reason}\n".encode())
    assert echo.requests == []


def test_an_authority_that_the_host_does_not_trust_is_refused(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port) as joint,  # with the host's own authorities
    ):
        answer = joint.exchange(GET)
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert b"certificate not valid: unable to get local issuer certificate" in answer
    assert echo.requests == []


def test_the_sandboxs_own_authority_does_not_vouch_for_real_hosts() -> None:
    authority = Authority()
    context = authority.context_for("api.test")
    with raw_server(answering(b"HTTP/1.1 200 OK\r\n\r\n"), context) as port, pump(port) as joint:
        answer = joint.exchange(GET)
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")


def test_a_server_without_tls_is_a_bad_gateway(private_authority: PrivateAuthority) -> None:
    with (
        echo_server() as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        answer = joint.exchange(GET)
    assert answer.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
    assert echo.requests == []


@pytest.mark.parametrize("name", ["other.test", "api.test.evil.test", "test", None])
def test_another_server_name_is_refused(
    private_authority: PrivateAuthority, name: str | None
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
        pytest.raises(ssl.SSLError, match=r"(?i)unrecognized name"),
    ):
        joint.connect_tls(name)
    assert echo.requests == []
    assert [seen.reason for seen in joint.seen] == [
        "the guest asked by TLS (SNI) for another host than api.test"
    ]


def test_the_server_name_may_be_in_another_case(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
        joint.connect_tls("API.Test") as guest,
    ):
        guest.sendall(GET)
        assert received(guest).endswith(b"GET /x 0\n")


def test_a_host_may_be_an_address(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("127.0.0.1")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, host="127.0.0.1") as joint,
        joint.connect_tls("127.0.0.1") as guest,
    ):
        guest.sendall(GET.replace(b"api.test", b"127.0.0.1"))
        assert received(guest).endswith(b"GET /x 0\n")


def test_a_guest_that_does_not_trust_the_authority_is_told_apart(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        with pytest.raises(ssl.SSLCertVerificationError):
            ssl.create_default_context().wrap_socket(joint.connect(), server_hostname="api.test")
        assert joint.ended.acquire(timeout=10)
    assert echo.requests == []
    assert joint.seen[0].reason == (
        "the guest does not trust the sandbox's authority: TLSV1_ALERT_UNKNOWN_CA"
    )


def test_a_response_without_a_length_that_tls_does_not_end_is_cut_off(
    private_authority: PrivateAuthority,
) -> None:
    def handle(connection: object) -> None:
        assert isinstance(connection, ssl.SSLSocket)
        connection.recv(65536)
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\nhalf of")
        connection.shutdown(2)  # without TLS's closing alert

    with (
        raw_server(handle, private_authority.context("api.test")) as port,
        pump(port, ca_file=private_authority.ca_file) as joint,
    ):
        answer = joint.exchange(GET)
    assert b"half of" in answer
    assert not answer.endswith(b"0\r\n\r\n")
    assert joint.seen[0].reason == "TLS connection cut off"


@pytest.mark.parametrize(
    "data",
    [
        b"\x16",
        b"\x16\x03\x01\x00\x05hello",
        b"\x16\x03\x01\xff\xff" + b"\x00" * 70000,
        b"\x16" * 5000,
    ],
)
def test_broken_tls_ends_the_connection(data: bytes) -> None:
    with echo_server() as echo, pump(echo.port) as joint:
        joint.exchange(data, tls=False)
    assert echo.requests == []


def test_certificates_of_hosts_are_kept_up_to_a_limit() -> None:
    authority = Authority()
    first = authority.context_for("h0.test")
    assert authority.context_for("h0.test") is first
    for number in range(1, HOSTS_KEPT + 1):
        authority.context_for(f"h{number}.test")
    assert authority.context_for("h0.test") is not first
    assert repr(authority) == f"<Authority with {HOSTS_KEPT} hosts>"


def test_threads_share_an_authority() -> None:
    authority = Authority()
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(authority.certificate)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_no_two_sandboxes_trust_each_others_hosts() -> None:
    first, second = Authority(), Authority()
    assert first.certificate != second.certificate
    trusted = ssl.create_default_context(cadata=second.certificate.decode())
    handle = answering(b"HTTP/1.1 200 OK\r\n\r\n")
    with raw_server(handle, first.context_for("api.test")) as port, pump(port) as joint:
        client = joint.connect()
        with pytest.raises(ssl.SSLCertVerificationError):
            trusted.wrap_socket(client, server_hostname="api.test")
        client.close()


def test_real_hosts_are_always_verified() -> None:
    context = verifying_context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2


def test_a_strict_client_accepts_the_certificates(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file) as joint,
    ):
        context = joint.guest_context()
        context.verify_flags |= ssl.VERIFY_X509_STRICT  # the default since Python 3.13
        with context.wrap_socket(joint.connect(), server_hostname="api.test") as guest:
            guest.sendall(GET)
            assert received(guest).endswith(b"GET /x 0\n")
