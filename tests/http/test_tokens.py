"""Which clients are admitted, and how much each may use."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.http.server import Client, ServerProcess, serving, write_tokens
from wasmsand.http.failures import ApiFailure
from wasmsand.http.quotas import Quotas
from wasmsand.http.serve import CannotServe, check_address
from wasmsand.http.settings import Settings
from wasmsand.http.tokens import (
    Quota,
    Token,
    TokensRejected,
    TokenTable,
    read_token_file,
    read_token_variable,
)

ALICE, BOB = "alice-has-a-token-of-her-own", "bob-has-another-token-here"
DAVE = "dave-must-not-ask-too-often"

TOKENS: dict[str, dict[str, object]] = {
    "alice": {"token": ALICE},
    "bob": {
        "token": BOB,
        "max_sandboxes": 2,
        "max_memory_bytes": 3_000_000_000,
        "max_running_commands": 1,
    },
    "dave": {"token": DAVE, "requests_per_second": 0.5},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    path = write_tokens(tmp_path_factory.mktemp("tokens") / "tokens.toml", TOKENS)
    environ = {"WASMSAND_TOKENS": "carol:carol-is-in-the-environment"}
    with serving("--tokens-file", str(path), environ=environ) as server:
        yield server


@pytest.fixture
def alice(server: ServerProcess) -> Client:
    return Client(server.url, ALICE)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Bearer {ALICE}x"},
        {"Authorization": f"Basic {ALICE}"},
        {"Authorization": ALICE},
        {"Authorization": "Bearer \xff\xfe"},
        {"Authorization": "Bearer " + "x" * 10_000},
    ],
)
@pytest.mark.parametrize("target", ["/v1/sandboxes", "/metrics", "/v1/sandboxes/sbx-0/usage"])
def test_without_a_known_token_nothing_is_revealed(
    server: ServerProcess, target: str, headers: dict[str, str]
) -> None:
    answer = Client(server.url).ask("GET", target, headers=headers)
    assert answer.error == (
        401,
        "unauthorized",
        "the token is missing or unknown; send `Authorization: Bearer TOKEN` (Python: "
        "Sandbox.connect(url, token=...))",
    )
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("target", ["/healthz", "/openapi.json"])
def test_health_and_openapi_need_no_token(server: ServerProcess, target: str) -> None:
    assert Client(server.url).ask("GET", target).status == 200


def test_tokens_are_read_from_the_environment(server: ServerProcess) -> None:
    assert Client(server.url, "carol-is-in-the-environment").ask("GET", "/v1/sandboxes").json == {
        "sandboxes": []
    }


def test_a_sandbox_of_another_token_does_not_exist(server: ServerProcess, alice: Client) -> None:
    bob = Client(server.url, BOB)
    sandbox = alice.create()
    for method, target in (("GET", ""), ("DELETE", ""), ("GET", "/env"), ("GET", "/files?path=/")):
        assert bob.ask(method, sandbox + target).error[:2] == (404, "sandbox_not_found")
    assert bob.ask("GET", "/v1/sandboxes").json == {"sandboxes": []}
    assert alice.ask("DELETE", sandbox).status == 200


def test_sandboxes_and_memory_of_a_token_are_bounded(server: ServerProcess) -> None:
    bob = Client(server.url, BOB)
    first = bob.create()
    status, code, message = bob.ask("POST", "/v1/sandboxes", {"memory_limit_bytes": 2**32}).error
    assert (status, code) == (429, "quota_exceeded")
    assert message.endswith("kill a sandbox, or raise max_memory_bytes of bob")
    second = bob.create()
    assert bob.ask("POST", "/v1/sandboxes").error == (
        429,
        "quota_exceeded",
        "2 sandboxes exist already; kill one, or raise max_sandboxes of bob",
    )
    bob.ask("DELETE", first)
    bob.ask("DELETE", bob.create())
    bob.ask("DELETE", second)


def test_running_commands_of_a_token_are_bounded(server: ServerProcess) -> None:
    bob = Client(server.url, BOB)
    sandbox = bob.create()
    with ThreadPoolExecutor(2) as pool:
        long = pool.submit(bob.run, sandbox, "touch begun; sleep 1; echo done")
        while bob.ask("GET", f"{sandbox}/files/stat?path=begun").status != 200:
            time.sleep(0.02)
        answer = bob.run(sandbox, "true")
        assert answer.error == (
            429,
            "quota_exceeded",
            "1 commands run already; wait for one to end, or raise max_running_commands of bob",
        )
        assert long.result().json["stdout"] == "done\n"
    assert bob.run(sandbox, "true").json["exit_code"] == 0
    bob.ask("DELETE", sandbox)


def test_a_failed_creation_gives_back_what_it_had_reserved(server: ServerProcess) -> None:
    bob = Client(server.url, BOB)
    for _ in range(5):  # more than max_sandboxes, with more memory than max_memory_bytes
        assert bob.ask("POST", "/v1/sandboxes", {"cwd": "/etc/passwd"}).status == 409
    bob.ask("DELETE", bob.create())


def test_requests_per_second_are_bounded(server: ServerProcess) -> None:
    dave = Client(server.url, DAVE)
    answers = [dave.ask("GET", "/v1/sandboxes") for _ in range(5)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused
    assert refused[0].error[1] == "rate_limited"
    assert int(refused[0].headers["retry-after"]) >= 1


def test_a_page_of_a_browser_cannot_use_a_server_without_tokens() -> None:
    with serving() as server:
        client = Client(server.url)
        for headers in ({"Origin": "https://evil.example"}, {"Host": "evil.example"}):
            answer = client.ask("POST", "/v1/sandboxes", headers=headers)
            assert answer.error[:2] == (403, "forbidden")
        assert client.ask("GET", "/v1/sandboxes", headers={"Host": "localhost:1"}).status == 200


def test_an_unusual_path_cannot_bypass_the_checks(alice: Client) -> None:
    for target in ("//v1/sandboxes", "/v1/./sandboxes", "/v1%2Fsandboxes/x/../", "/%2e%2e/metrics"):
        parts = urlsplit(alice.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        connection.request("GET", target)
        status = connection.getresponse().status
        connection.close()
        assert status in (401, 404), target


@pytest.mark.no_userland
class TestReadingTokens:
    """Tokens are read from a file and from the environment."""

    def test_quotas_are_read_from_a_file(self, tmp_path: Path) -> None:
        alice, bob, dave = read_token_file(write_tokens(tmp_path / "tokens.toml", TOKENS))
        assert (alice.name, alice.quota) == ("alice", Quota())
        assert bob.quota == Quota(2, 3_000_000_000, max_running_commands=1)
        assert dave.quota == Quota(requests_per_second=0.5)
        assert ALICE not in repr(alice)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("token = 1", "Expected `array`, got `int` - at `$.token`"),
            ("[[token]]\nname = 'a'", "missing required field `token`"),
            ("[[token]]\nname = 'a'\ntoken = 'short'", "must have 16 to 512 characters, not 5"),
            (f"[[token]]\nname = 'a b'\ntoken = '{ALICE}'", "token name 'a b' must be"),
            (f"[[token]]\nname = 'a'\ntoken = '{ALICE} x'", "printable ASCII without spaces"),
            (
                f"[[token]]\nname = 'a'\ntoken = '{ALICE}'\nmax_sandboxes = 0",
                "max_sandboxes of a must be positive, not 0",
            ),
            (f"[[token]]\nname = 'a'\ntoken = '{ALICE}'\nadmin = true", "unknown field `admin`"),
            ("[[token", "Expected"),
        ],
    )
    def test_invalid_token_files_are_refused(self, tmp_path: Path, text: str, message: str) -> None:
        path = tmp_path / "tokens.toml"
        path.write_text(text)
        with pytest.raises(TokensRejected, match=r"tokens\.toml: ") as caught:
            read_token_file(path)
        assert message in str(caught.value)
        assert ALICE not in str(caught.value)

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(TokensRejected, match="No such file"):
            read_token_file(tmp_path / "nothing")

    def test_the_variable_holds_several_tokens(self) -> None:
        tokens = read_token_variable({"WASMSAND_TOKENS": f" a:{ALICE}, {BOB} ,"})
        assert [token.name for token in tokens] == ["a", "token2"]
        table = TokenTable(tokens)
        assert table.authenticate(f"Bearer {BOB}") is tokens[1]
        assert table.authenticate(f"bearer {ALICE}") is tokens[0]
        assert read_token_variable({}) == ()

    def test_two_tokens_with_one_name_are_refused(self) -> None:
        with pytest.raises(TokensRejected, match="names must differ"):
            TokenTable([Token.of("a", ALICE), Token.of("a", BOB)])


@pytest.mark.no_userland
class TestQuotas:
    """Quotas, with a clock that the test moves."""

    def test_the_rate_recovers_with_time(self) -> None:
        now = 100.0
        quotas = Quotas(10, lambda: now)
        owner = Token.of("a", ALICE, Quota(requests_per_second=2))
        quotas.count_request(owner)
        quotas.count_request(owner)
        with pytest.raises(ApiFailure) as caught:
            quotas.count_request(owner)
        assert caught.value.retry_after == pytest.approx(0.5)
        now += 0.5
        quotas.count_request(owner)
        now += 100
        quotas.count_request(owner)
        quotas.count_request(owner)
        with pytest.raises(ApiFailure):
            quotas.count_request(owner)

    def test_sandboxes_of_all_tokens_together(self) -> None:
        quotas = Quotas(2)
        one, two = Token.of("one", ALICE), Token.of("two", BOB)
        quotas.reserve_sandbox(one, 1)
        quotas.reserve_sandbox(two, 1)
        with pytest.raises(ApiFailure, match="--max-sandboxes") as caught:
            quotas.reserve_sandbox(two, 1)
        assert (caught.value.status, caught.value.code) == (503, "server_full")
        quotas.release_sandbox(one, 1)
        quotas.reserve_sandbox(two, 1)


@pytest.mark.no_userland
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "127.0.0.1.example"])
def test_without_tokens_only_loopback_addresses_are_listened_on(host: str) -> None:
    with pytest.raises(CannotServe, match=r"without tokens.*--tokens-file"):
        check_address(Settings(host=host))
    check_address(Settings(host=host, tokens=(Token.of("a", ALICE),)))


@pytest.mark.no_userland
@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.1.2.3"])
def test_loopback_addresses_need_no_token(host: str) -> None:
    check_address(Settings(host=host))
