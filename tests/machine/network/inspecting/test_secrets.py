"""Secrets reach the host that they belong to, and nobody else."""

from __future__ import annotations

import base64
import pickle
import traceback

import pytest

from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.pump import Answer, anything, pump
from tests.machine.network.inspecting.servers import echo_server
from wasmsand.machine.network.inspecting.authority import Authority
from wasmsand.machine.network.inspecting.contexts import verifying_context
from wasmsand.machine.network.inspecting.inspector import Inspector
from wasmsand.machine.network.inspecting.order import InspectionOrder
from wasmsand.machine.network.inspecting.secrets import HEADS_MAX, SecretProblem, Secrets

pytestmark = pytest.mark.no_userland
SECRET = "sk-4f9a-never-in-the-guest"
BEARER = {"Authorization": f"Bearer {SECRET}"}
PLACEHOLDERS = {"{{API_TOKEN}}": SECRET, "{{API_TOKEN}}2": "another-value"}


def order(**changes: object) -> InspectionOrder:
    values: dict[str, object] = {
        "host": "api.test",
        "port": 443,
        "decide": anything,
        "authority": Authority(),
        "server_context": verifying_context(),
        "headers": BEARER,
        "placeholders": PLACEHOLDERS,
    }
    return InspectionOrder(**(values | changes))  # type: ignore[arg-type]


def test_the_host_gets_the_secret_instead_of_the_guests_value(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, headers=BEARER) as joint,
    ):
        client = joint.client()
        answers = b""
        for headers in ({}, {"authorization": "Bearer mine"}, {"AUTHORIZATION": ""}):
            client.request("GET", "/a", headers=headers)
            response = client.getresponse()
            answers += str(response.headers).encode() + response.read()
        client.close()
    assert [request[2]["authorization"] for request in echo.requests] == 3 * [[f"Bearer {SECRET}"]]
    assert SECRET.encode() not in answers
    assert SECRET not in repr(joint.seen)


def test_a_refused_request_has_no_secret(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(
            echo.port,
            ca_file=private_authority.ca_file,
            headers=BEARER,
            placeholders=PLACEHOLDERS,
            decide=lambda method, path: Answer(False, "no"),
        ) as joint,
    ):
        answer = joint.exchange(
            b"GET /{{API_TOKEN}} HTTP/1.1\r\nHost: api.test\r\nX: {{API_TOKEN}}\r\n"
            b"Connection: close\r\n\r\n"
        )
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert SECRET.encode() not in answer
    assert echo.requests == []


@pytest.mark.parametrize(
    ("sent", "got"),
    [
        ("{{API_TOKEN}}", SECRET),
        ("Bearer {{API_TOKEN}}, x={{API_TOKEN}}", f"Bearer {SECRET}, x={SECRET}"),
        ("{{API_TOKEN}}2", "another-value"),
        ("{{api_token}}", "{{api_token}}"),
        (
            "Basic " + base64.b64encode(b"user:{{API_TOKEN}}").decode(),
            "Basic " + base64.b64encode(f"user:{SECRET}".encode()).decode(),
        ),
        ("Basic " + base64.b64encode(b"a:b").decode(), "Basic YTpi"),
        ("Basic {{API_TOKEN}}", f"Basic {SECRET}"),
    ],
)
def test_placeholders_are_replaced_in_header_values(
    private_authority: PrivateAuthority, sent: str, got: str
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, placeholders=PLACEHOLDERS) as joint,
    ):
        client = joint.client()
        client.request("POST", "/a?t={{API_TOKEN}}", b"{{API_TOKEN}}", {"X-Key": sent})
        assert SECRET.encode() not in client.getresponse().read()
        client.close()
    method, path, headers, body = echo.requests[0]
    assert headers["x-key"] == [got]
    assert (method, path, body) == ("POST", "/a?t={{API_TOKEN}}", b"{{API_TOKEN}}")


def test_a_value_is_not_searched_for_placeholders_again() -> None:
    secrets = Secrets({}, {"{{ONE}}!": "{{TWO}}!", "{{TWO}}!": "second"})
    assert secrets.applied([(b"X", b"{{ONE}}!{{TWO}}!")]) == [(b"X", b"{{TWO}}!second")]


def test_many_placeholders_do_not_make_a_large_head() -> None:
    secrets = Secrets({}, {"{{LONG}}": "v" * 10_000})
    assert secrets.applied([(b"X", b"{{LONG}}" * 7)]) is None
    assert secrets.applied([(b"X", b"{{LONG}}" * 3), (b"Y", b"{{LONG}}" * 4)]) is None
    fitting = secrets.applied([(b"X", b"{{LONG}}" * 6)])
    assert fitting is not None
    assert len(fitting[0][1]) == 60_000 < HEADS_MAX


def test_the_guest_cannot_have_the_secret_dropped_or_moved(
    private_authority: PrivateAuthority,
) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, headers=BEARER) as joint,
    ):
        joint.exchange(
            b"GET /a HTTP/1.1\r\nHost: api.test\r\nAuthorization: Bearer mine\r\n"
            b"Connection: close, authorization, x-other\r\nX-Other: 1\r\n\r\n"
        )
    headers = echo.requests[0][2]
    assert headers["authorization"] == [f"Bearer {SECRET}"]
    assert headers["connection"] == ["close"]
    assert "x-other" not in headers


def test_headers_that_the_host_repeats_are_masked(private_authority: PrivateAuthority) -> None:
    with (
        echo_server(private_authority.context("api.test")) as echo,
        pump(
            echo.port,
            ca_file=private_authority.ca_file,
            headers=BEARER,
            placeholders=PLACEHOLDERS,
        ) as joint,
    ):
        answer = joint.exchange(
            b"GET /reflect HTTP/1.1\r\nHost: api.test\r\nOrigin: https://{{API_TOKEN}}\r\n"
            b"X-Request-Id: {{API_TOKEN}}\r\nConnection: close\r\n\r\n"
        )
    assert echo.requests[0][2]["origin"] == [f"https://{SECRET}"]
    stars = b"*" * len(SECRET)
    assert b"X-Was-Origin: https://" + stars in answer
    assert b"X-Was-X-Request-Id: " + stars in answer
    assert b"X-Was-Authorization: " + b"*" * len(f"Bearer {SECRET}") in answer
    assert SECRET.encode() not in answer


def test_ordinary_headers_that_the_user_sets_are_not_masked() -> None:
    secrets = Secrets({"Accept": "application/json", "X-Key": "application/key"})
    response = [(b"Content-Type", b"application/json"), (b"X", b"application/key")]
    assert secrets.masked(response) == [(b"Content-Type", b"application/json"), (b"X", b"*" * 15)]


def test_a_redirect_is_for_the_guest_to_follow(private_authority: PrivateAuthority) -> None:
    """The other host is another connection, with secrets of its own or none."""
    with (
        echo_server(private_authority.context("api.test", "other.test")) as echo,
        pump(echo.port, ca_file=private_authority.ca_file, headers=BEARER) as joint,
        pump(echo.port, ca_file=private_authority.ca_file, host="other.test") as other,
    ):
        client = joint.client()
        client.request("GET", "/redirect")
        response = client.getresponse()
        response.read()
        client.close()
        assert response.headers["Location"] == "https://other.test/landing"
        follower = other.client("other.test")
        follower.request("GET", "/landing")
        follower.getresponse().read()
        follower.close()
    assert "authorization" in echo.requests[0][2]
    assert "authorization" not in echo.requests[1][2]


def test_secrets_are_not_sent_without_tls() -> None:
    with echo_server() as echo, pump(echo.port, port=80, headers=BEARER) as joint:
        answer = joint.exchange(b"GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert answer.endswith(b"api.test has secrets, which are sent by TLS only: use https://\n")
    assert echo.requests == []
    assert SECRET.encode() not in joint.to_server


def test_secrets_are_sent_without_tls_where_that_is_allowed() -> None:
    with (
        echo_server() as echo,
        pump(echo.port, port=80, headers=BEARER, secrets_in_clear=True) as joint,
    ):
        joint.exchange(b"GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n", tls=False)
    assert echo.requests[0][2]["authorization"] == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    ("headers", "placeholders", "message"),
    [
        ({"Authorization": SECRET + "\r\nX: y"}, {}, "the secret for the header Authorization is"),
        ({"Authorization": SECRET + "\x00"}, {}, "the secret for the header Authorization is"),
        ({"Authorization": " " + SECRET}, {}, "the secret for the header Authorization is"),
        ({"Authorization": ""}, {}, "the secret for the header Authorization is empty"),
        ({"Authorization": SECRET + "\u20ac"}, {}, "characters that a header cannot have"),
        ({"Authorization": SECRET * 3000}, {}, "longer than 65536 bytes"),
        ({"Host": SECRET}, {}, "'Host' cannot be a header with a secret"),
        ({"Content-Length": "5"}, {}, "'Content-Length' cannot be a header with a secret"),
        ({"bad name": SECRET}, {}, "'bad name' cannot be a header with a secret"),
        ({}, {"{{API}}!": SECRET + "\n"}, "the secret for the placeholder"),
        ({}, {"{{API\n}}!": SECRET}, "is empty, or has line breaks"),
        ({}, {"": SECRET}, "the placeholder '' has less than 8 letters"),
    ],
)
def test_a_secret_that_cannot_be_sent_is_refused_without_showing_it(
    headers: dict[str, str], placeholders: dict[str, str], message: str
) -> None:
    with pytest.raises(SecretProblem) as caught:
        Secrets(headers, placeholders)
    shown = "".join(traceback.format_exception(caught.value))
    assert message in shown
    assert SECRET not in shown


def test_no_repr_shows_a_secret() -> None:
    inspector = Inspector(order())
    inspector.guest_sent(b"GET / HTTP/1.1\r\nHost: api.test\r\n")
    shown = [repr(Secrets(BEARER, PLACEHOLDERS)), repr(order()), repr(inspector)]
    shown += [repr(value) for value in vars(inspector).values()]
    assert SECRET not in " ".join(shown)
    assert "Authorization" in shown[0]


def test_an_authority_cannot_be_copied_out_of_the_process() -> None:
    authority = Authority()
    authority.context_for("api.test")
    with pytest.raises(TypeError):
        pickle.dumps(authority)
