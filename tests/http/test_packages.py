"""Packages over plain HTTP: what clients without our SDK see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.server import Client, DidNotStart, ServerProcess, serving


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with serving() as server:
        yield Client(server.url)


def error(client: Client, path: str, value: object) -> tuple[int, str, str | None]:
    answer = client.ask("POST", path, value)
    found = answer.json["error"]
    return answer.status, found["code"], found.get("package")


def test_an_unknown_package_is_an_error_with_its_name(client: Client) -> None:
    answer = error(client, "/v1/sandboxes", {"packages": ["no-such-package"]})
    assert answer == (404, "package_not_found", "no-such-package")


def test_standard_modules_and_all_packages_are_accepted(client: Client) -> None:
    assert client.ask("POST", "/v1/sandboxes", {"packages": ["sqlite3"]}).status == 201
    assert client.ask("POST", "/v1/sandboxes", {"packages": "all"}).status == 201


@pytest.mark.parametrize("wrong", ["numpy", 5, {"a": 1}, [5], [[]], None])
def test_packages_of_a_wrong_type_are_refused(wrong: object, client: Client) -> None:
    assert error(client, "/v1/sandboxes", {"packages": wrong})[:2] == (400, "invalid_value")


@pytest.mark.parametrize("wrong", [[""], ["a b"], ["../x"], ["x @ file:///x"], ["x"] * 1001])
def test_text_that_is_no_requirement_is_refused(wrong: list[str], client: Client) -> None:
    sandbox = client.create()
    assert error(client, "/v1/sandboxes", {"packages": wrong})[:2] == (400, "invalid_value")
    install = error(client, f"{sandbox}/packages/install", {"requirements": wrong})
    assert install[:2] == (400, "invalid_value")


def test_the_index_is_not_used_unless_the_server_allows_it(client: Client) -> None:
    sandbox = client.create()
    answer = error(client, f"{sandbox}/packages/install", {"requirements": ["no-such-package"]})
    assert answer == (403, "index_not_allowed", "no-such-package")


def test_uninstalling_what_is_not_installed_is_an_error(client: Client) -> None:
    sandbox = client.create()
    answer = error(client, f"{sandbox}/packages/uninstall", {"names": ["no-such-package"]})
    assert answer == (404, "package_not_found", "no-such-package")


@pytest.mark.parametrize("body", [{}, {"requirements": "six"}, {"names": ["six"]}, []])
def test_a_body_of_the_wrong_shape_is_refused(body: object, client: Client) -> None:
    sandbox = client.create()
    assert error(client, f"{sandbox}/packages/install", body)[:2] == (400, "invalid_value")


def test_a_server_with_an_unknown_default_package_does_not_start() -> None:
    with pytest.raises(DidNotStart, match="no-such-package"):
        ServerProcess("--package", "no-such-package")
