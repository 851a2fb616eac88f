"""Which requests come from programs on this machine."""

from __future__ import annotations

import pytest

from wasmsand.serving.hosts import foreign_host, foreign_page, is_local_origin

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.1.2.3:8750", "[::1]", "[::1]:8750"]
)
def test_names_of_this_machine_are_accepted(host: str) -> None:
    assert foreign_host([(b"host", host.encode())]) is None
    assert is_local_origin(f"http://{host}")


@pytest.mark.parametrize(
    "host",
    [
        "",
        ":80",
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:127.0.0.1",
        "127.0.0.1:port",
        "127.0.0.1:123456",
        "127.0.0.1, evil.example",
        "127.0.0.1 ",
        "[::1",
        "::1",
        "[::1]evil",
        "[127.0.0.1]x",
        "[evil.example]",
        "0.0.0.0",
        "[::]",
        "127.0.0.1/",
        "127.0.0.1\\@evil",
        "loc\u00e4lhost",
        "\x00",
        "%6c%6f%63%61%6c%68%6f%73%74",
    ],
)
def test_other_names_and_invalid_names_are_refused(host: str) -> None:
    assert foreign_host([(b"host", host.encode("utf-8"))]) is not None
    assert not is_local_origin(f"http://{host}")


def test_exactly_one_host_header_is_required() -> None:
    assert foreign_host([]) == "0 Host headers"
    assert foreign_host([(b"host", b"localhost"), (b"host", b"localhost")]) == "2 Host headers"


@pytest.mark.parametrize(
    "header",
    [
        (b"origin", b"http://localhost"),
        (b"origin", b"null"),
        (b"sec-fetch-site", b"cross-site"),
        (b"sec-fetch-site", b"same-site"),
    ],
)
def test_requests_of_a_web_page_are_refused(header: tuple[bytes, bytes]) -> None:
    assert foreign_page([(b"host", b"localhost"), header]) == "headers of a web page"


def test_requests_that_a_user_typed_are_accepted() -> None:
    assert foreign_page([(b"host", b"localhost"), (b"sec-fetch-site", b"none")]) is None
