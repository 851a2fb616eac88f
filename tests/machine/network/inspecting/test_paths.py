"""A path is allowed only if it is in every way that servers read it."""

from __future__ import annotations

import pytest

from wasmsand.machine.network.inspecting.paths import AmbiguousPath, canonical, readings

pytestmark = pytest.mark.no_userland


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", {"/"}),
        ("/v1/models", {"/v1/models"}),
        ("/v1/models/", {"/v1/models/"}),
        ("/a.b/c..d/.../x", {"/a.b/c..d/.../x"}),
        ("/%41%7e", {"/A~"}),
        ("/a%20b", {"/a%20b"}),
        ("/%e2%82%ac", {"/%E2%82%AC"}),
        ("/a|b", {"/a%7Cb"}),
        ("/%61dmin", {"/admin"}),
        ("/a/../b", {"/a/../b", "/b"}),
        ("/a/./b/.", {"/a/./b/.", "/a/b/"}),
        ("/../../x", {"/../../x", "/x"}),
        ("/a/%2e%2E/b", {"/a/../b", "/b"}),
        ("//a///b", {"//a///b", "/a/b"}),
        ("/a\\..\\b", {"/a%5C..%5Cb", "/b"}),
        ("/a/..%2fb", {"/a/..%2Fb", "/b"}),
        ("/a%2fb", {"/a%2Fb", "/a/b"}),
        ("/a/..%5cb", {"/a/..%5Cb", "/b"}),
        ("/a/%252e%252e/b", {"/a/%252e%252e/b", "/b"}),
        ("/a;x=1/b", {"/a;x=1/b", "/a/b"}),
        ("/a/..;/b", {"/a/..;/b", "/b"}),
        ("/a/..;x=%2f/b", {"/a/..;x=%2F/b", "/b", "/a/..;x=/b"}),
        ("/100%25", {"/100%25"}),
    ],
)
def test_the_readings_of_a_path(path: str, expected: set[str]) -> None:
    found = readings(path.encode())
    assert set(found) == expected
    assert all(canonical(reading.encode()) == reading for reading in found)


def test_an_ordinary_path_has_one_reading() -> None:
    for path in ("/", "/v1/chat/completions", "/a_b/c-d/@scope/x.tar.gz", "/%E2%82%AC", "/a%20b"):
        assert len(readings(path.encode())) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("", "does not begin with /"),
        ("a", "does not begin with /"),
        ("/a b", "invalid characters"),
        ("/a#b", "invalid characters"),
        ("/\u00e9", "invalid characters"),
        ("/%", "not followed by two hexadecimal digits"),
        ("/%2", "not followed by two hexadecimal digits"),
        ("/%zz", "not followed by two hexadecimal digits"),
        ("/%00", "control characters"),
        ("/a%0d%0aX", "control characters"),
        ("/%250a", "control characters"),
        ("/%c0%af", "not UTF-8"),
        ("/%ff", "not UTF-8"),
        ("/%25252525252e", "percent-encoded several times"),
    ],
)
def test_a_path_without_a_clear_meaning_is_refused(path: str, message: str) -> None:
    with pytest.raises(AmbiguousPath, match=message):
        readings(path.encode())


def test_long_paths_are_read_in_linear_time() -> None:
    for path in ("/" + "%2e%2e%2f" * 7000, "/" + "../" * 20000, "/" + ";a" * 30000, "/" * 60000):
        assert readings(path.encode())
