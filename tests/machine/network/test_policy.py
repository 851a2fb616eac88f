"""Decisions of a policy about names, addresses and requests."""

from __future__ import annotations

import pickle
import time

import pytest

from wasmsand.machine.network.policy import Budget, NetworkPolicy, policy_of
from wasmsand.machine.network.rules import RuleProblem, Verdict, parse_rule


def test_an_empty_policy_allows_nothing() -> None:
    policy = NetworkPolicy()
    assert policy.allows_nothing
    assert not policy.decide_name("example.com", None).allowed
    assert not policy.decide_address("8.8.8.8", 443, name=None).allowed
    assert not policy.decide_address("8.8.8.8", 443, name="example.com").allowed
    assert not policy.decide_request("example.com", 443, "GET", "/").allowed


def test_a_refusal_says_what_would_allow_it() -> None:
    policy = policy_of(allow=["example.com"])
    assert policy.decide_name("other.org", 443).reason == (
        "other.org:443 is not allowed; to allow it, add 'other.org:443' to network.allow"
    )
    assert policy.decide_address("10.0.0.1", 80, name=None).reason == (
        "10.0.0.1:80, a private address, is not allowed;"
        " to allow it, add '10.0.0.1:80' to network.allow"
    )
    assert policy.decide_address("::1", 80, name="example.com").reason == (
        "example.com leads to ::1, a loopback address, which no rule names;"
        " to allow it, add '[::1]:80' to network.allow"
    )


@pytest.mark.parametrize("name", ["example.com", "EXAMPLE.com", "example.com."])
def test_case_and_a_trailing_dot_do_not_matter(name: str) -> None:
    policy = policy_of(allow=["example.com:443"], deny=["evil.example"])
    assert policy.decide_name(name, 443).allowed
    assert policy.decide_name(name, None).allowed
    assert not policy.decide_name(name, 80).allowed
    assert not policy.decide_name("Evil.EXAMPLE.", 80).allowed


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a..b", "example.com..", " example.com", "example.com\0", "exa mple.com",
     "example.com:443", "user@example.com", "example.com/x", "*.example.com", "*", "2130706433",
     "0x7f.1", "127.1", "017700000001", "127.0.0.1.", "127.0.0.1%00.example.com",
     "ex\u0430mple.com", "example\u3002com", "a" * 300, f"{'b' * 64}.com", "[::1]", "::1%lo"],
)  # fmt: skip
def test_what_is_no_host_name_is_refused_even_by_every_host(name: str) -> None:
    verdict = policy_of(allow=["*", "example.com"]).decide_name(name, 443)
    assert not verdict.allowed
    assert verdict.reason.isascii()
    assert len(verdict.reason) < 400


def test_every_host_means_public_addresses_of_names() -> None:
    policy = policy_of(allow=["*"])
    assert policy.decide_name("example.com", 443).allowed
    assert policy.decide_address("8.8.8.8", 443, name="example.com").allowed
    assert not policy.decide_address("127.0.0.1", 443, name="example.com").allowed
    assert not policy.decide_address("127.0.0.1", 443, name="localhost").allowed
    assert not policy.decide_address("169.254.169.254", 80, name="metadata.internal").allowed
    assert not policy.decide_address("8.8.8.8", 443, name=None).allowed, "it would evade deny"


PRIVATE = (
    "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254",
    "169.254.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "::",
    "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "ff02::1", "::ffff:127.0.0.1",
    "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::7f00:1",
    "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1", "fd00:ec2::254", "168.63.129.16",
)  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("allow", ["example.com", "*", "0.0.0.0/0", "::/0"])
def test_an_address_that_is_not_public_is_refused_unless_named(address: str, allow: str) -> None:
    policy = policy_of(allow=[allow, "example.com"])
    assert not policy.decide_address(address, 443, name="example.com").allowed
    assert not policy.decide_address(address, 443, name=None).allowed
    assert not policy.decide_name(address, 443).allowed


def test_a_named_address_is_allowed_for_its_port() -> None:
    policy = policy_of(allow=["intranet.example", "10.0.0.5:8080", "192.168.0.0/16"])
    assert policy.decide_address("10.0.0.5", 8080, name="intranet.example").allowed
    assert policy.decide_address("::ffff:10.0.0.5", 8080, name="intranet.example").allowed
    assert policy.decide_address("10.0.0.5", 8080, name=None).allowed
    assert not policy.decide_address("10.0.0.5", 80, name="intranet.example").allowed
    assert not policy.decide_address("10.0.0.6", 8080, name="intranet.example").allowed
    assert policy.decide_address("192.168.7.7", 22, name=None).allowed
    assert not policy.decide_address("10.0.0.5", 8080, name="other.example").allowed


def test_public_literals_need_a_rule_of_their_own() -> None:
    policy = policy_of(allow=["one.example", "1.1.1.0/24:443"])
    assert policy.decide_address("1.1.1.1", 443, name=None).allowed
    assert policy.decide_name("1.1.1.1", 443).allowed
    assert not policy.decide_address("1.1.1.1", 53, name=None).allowed
    assert not policy.decide_address("8.8.8.8", 443, name=None).allowed
    assert policy.decide_address("8.8.8.8", 443, name="one.example").allowed


def test_deny_always_wins() -> None:
    policy = policy_of(
        allow=["*", "10.0.0.0/8", "8.8.8.8"],
        deny=["evil.example", "*.bad.example", "smtp.example:25", "10.0.0.1", "8.8.0.0/16"],
    )
    assert not policy.decide_name("evil.example", 443).allowed
    assert not policy.decide_name("evil.example", None).allowed
    assert policy.decide_name("www.evil.example", 443).allowed
    assert not policy.decide_name("a.b.bad.example", 443).allowed
    assert not policy.decide_name("smtp.example", 25).allowed
    assert policy.decide_name("smtp.example", None).allowed, "other ports are allowed"
    assert not policy.decide_address("10.0.0.1", 80, name=None).allowed
    assert not policy.decide_address("10.0.0.1", 80, name="fine.example").allowed
    assert not policy.decide_address("::ffff:10.0.0.1", 80, name="fine.example").allowed
    assert policy.decide_address("10.0.0.2", 80, name=None).allowed
    assert not policy.decide_address("8.8.8.8", 80, name="fine.example").allowed
    assert not policy.decide_address("64:ff9b::8.8.8.8", 80, name="fine.example").allowed
    assert not policy.decide_address("2002:808:808::1", 80, name="fine.example").allowed
    assert "denied by '8.8.0.0/16'" in policy.decide_address("8.8.8.8", 1, name=None).reason


def test_an_address_in_hosts_counts_as_named_for_that_name() -> None:
    policy = policy_of(
        allow=["api.test", "web.test:443", "other.test"],
        hosts={"API.test.": "127.0.0.1", "web.test": "[::1]:8443"},
    )
    assert policy.mapped("api.test", 80) == ("127.0.0.1", 80)
    assert policy.mapped("Web.test", 443) == ("::1", 8443)
    assert policy.mapped("other.test", 443) is None
    assert policy.decide_address("127.0.0.1", 80, name="api.test").allowed
    assert policy.decide_address("::1", 8443, name="web.test").allowed
    assert not policy.decide_address("::1", 22, name="web.test").allowed
    assert not policy.decide_address("127.0.0.2", 80, name="api.test").allowed
    assert not policy.decide_address("127.0.0.1", 80, name="other.test").allowed
    assert not policy.decide_address("127.0.0.1", 80, name=None).allowed


def test_a_name_in_hosts_is_not_allowed_by_that() -> None:
    assert not policy_of(hosts={"api.test": "127.0.0.1"}).decide_name("api.test", 80).allowed


def test_rules_about_requests_are_decided_per_request() -> None:
    policy = policy_of(
        allow=["GET,HEAD api.example/v1/*", "plain.example", "POST 10.0.0.1:80/in"],
        deny=["plain.example:8080/admin", "DELETE *.example"],
    )
    assert policy.decide_name("api.example", 443) == Verdict(True, True)
    assert policy.decide_name("plain.example", 443).inspected, "DELETE is denied"
    assert policy.decide_request("api.example", 443, "GET", "/v1/models?x=/../y").allowed
    assert not policy.decide_request("api.example", 443, "POST", "/v1/models").allowed
    assert not policy.decide_request("api.example", 443, "GET", "/v2").allowed
    assert not policy.decide_request("api.example", 443, "DELETE", "/v1/x").allowed
    assert policy.decide_request("plain.example", 443, "PUT", "/any/../thing").allowed
    assert not policy.decide_request("plain.example", 8080, "GET", "/Admin/x").allowed
    assert not policy.decide_request("plain.example", 8080, "GET", "/x/../admin").allowed
    assert policy.decide_address("10.0.0.1", 80, name=None) == Verdict(True, True)
    assert policy.decide_request("10.0.0.1", 80, "POST", "/in").allowed
    assert not policy.decide_request("10.0.0.1", 80, "GET", "/in").allowed
    assert not policy.decide_request("other.org", 80, "GET", "/v1/x").allowed


def test_rules_add_up() -> None:
    policy = policy_of(allow=["GET git.example/x/*", "git.example:22", "10.0.0.1", "GET 10.0.0.1"])
    assert policy.decide_name("git.example", 443).inspected
    assert policy.decide_name("git.example", 22) == Verdict(True)
    assert policy.decide_name("git.example", None).inspected, "at some port"
    assert policy.decide_address("8.8.8.8", 443, name="git.example").inspected
    assert policy.decide_request("git.example", 22, "POST", "/any").allowed
    assert policy.decide_address("10.0.0.1", 80, name=None) == Verdict(True)
    assert policy.denying("DELETE git.example").decide_name("git.example", 22).inspected
    capped = policy.under(policy_of(allow=["GET git.example"]))
    assert capped.decide_name("git.example", 22).inspected
    assert not capped.decide_request("git.example", 22, "POST", "/any").allowed


@pytest.mark.parametrize(
    "path",
    ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/%2E./admin", "/v1//admin", "/v1/..;/admin",
     "/v1/%2fadmin", "/v1/%5c..%5cadmin", "/v1/\\..\\admin", "/v1/%252e%252e/admin", "/v1/./x",
     "/v1/\x00", "/v1/%00", "/v1/\u00e9", "/v1/%zz"],
)  # fmt: skip
def test_a_path_that_servers_read_differently_is_allowed_by_no_path(path: str) -> None:
    policy = policy_of(allow=["api.example/v1/*"])
    assert policy.decide_request("api.example", 443, "GET", "/v1/admin").allowed
    verdict = policy.decide_request("api.example", 443, "GET", path)
    assert not verdict.allowed
    assert verdict.reason.isascii()


@pytest.mark.parametrize(
    ("method", "path"),
    [("CONNECT", "/"), ("connect", "10.0.0.1:80"), ("GET", "http://10.0.0.1/"), ("GET", "x")],
)
def test_an_allowed_host_is_not_used_as_a_proxy(method: str, path: str) -> None:
    verdict = policy_of(allow=["api.example"]).decide_request("api.example", 80, method, path)
    assert not verdict.allowed
    assert "is not used as a proxy" in verdict.reason


def test_hosts_with_secrets_are_inspected() -> None:
    policy = policy_of(
        allow=["*"],
        secrets={"API.example:443": {"Authorization": "Bearer s3cret"}},
        placeholders={"*.other.example": {"placeholder-1": "s3cret-2"}},
    )
    assert policy.decide_name("api.example", 443).inspected
    assert not policy.decide_name("api.example", 80).inspected
    assert policy.decide_name("www.other.example", 80).inspected
    assert not policy.decide_name("third.example", 443).inspected
    assert policy.headers_for("api.example.", 443) == {"Authorization": "Bearer s3cret"}
    assert policy.headers_for("api.example", 80) == {}
    assert policy.placeholders_for("a.other.example", 1) == {"placeholder-1": "s3cret-2"}
    assert policy.placeholders_for("api.example", 443) == {}


def test_no_secret_is_in_a_repr() -> None:
    policy = policy_of(
        secrets={"a.example": {"X-Key": "s3cret"}},
        placeholders={"a.example": {"placeholder": "s3cret"}},
        proxy="http://user:s3cret@proxy.example:3128",
    )
    assert "s3cret" not in repr(policy.under(policy))


@pytest.mark.parametrize(
    "table",
    [
        {"secrets": {"a.example": {"X-Key": "s3cret\r\nX: y"}}},
        {"secrets": {"a.example": {"X-Key": " s3cret"}}},
        {"secrets": {"a.example": {"X-Key": "s3cret\u2028"}}},
        {"secrets": {"a.example": {"X-Key": ""}}},
        {"secrets": {"a.example": {"X Key": "s3cret"}}},
        {"secrets": {"a.example": {"Host": "s3cret"}}},
        {"secrets": {"a.example": {"Content-Length": "s3cret"}}},
        {"secrets": {"a.example": {"X-Key": 5}}},
        {"secrets": {"a.example": "s3cret"}},
        {"secrets": {"*": {"X-Key": "s3cret"}}},
        {"secrets": {"GET a.example": {"X-Key": "s3cret"}}},
        {"secrets": {"a..example": {"X-Key": "s3cret"}}},
        {"secrets": ["s3cret"]},
        {"placeholders": {"a.example": {"short": "s3cret"}}},
        {"placeholders": {"a.example": {"long-enough": "s3cret\n"}}},
        {"hosts": {"a.example": "localhost"}},
        {"hosts": {"a.example": "127.1"}},
        {"hosts": {"a.example": "127.0.0.1:0"}},
        {"hosts": {"a.example": "127.0.0.1:65536"}},
        {"hosts": {"a.example": "::1:x"}},
        {"hosts": {"*.example": "127.0.0.1"}},
        {"hosts": {"127.0.0.1": "127.0.0.2"}},
        {"hosts": {"a.example": 1}},
        {"proxy": "https://user:s3cret@proxy"},
        {"proxy": "user:s3cret@proxy:3128"},
        {"proxy": "http://user:s3cret@proxy:99999"},
        {"proxy": "http://user:s3cret@proxy:80/path"},
        {"proxy": ""},
    ],
)
def test_malformed_tables_are_refused_without_showing_secrets(table: dict[str, object]) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the message is checked below
        policy_of(**table)  # type: ignore[arg-type]
    assert "s3cret" not in str(raised.value)


def test_one_rule_in_place_of_a_list_is_explained() -> None:
    with pytest.raises(RuleProblem, match=r"write \[\.\.\.\] around it"):
        policy_of(allow="example.com")


def test_rules_can_be_added_while_it_runs() -> None:
    policy = NetworkPolicy().allowing("a.example", "b.example", "A.example")
    assert [str(rule) for rule in policy.allow] == ["a.example", "b.example"]
    denied = policy.denying("a.example")
    assert not denied.decide_name("a.example", 80).allowed
    assert denied.decide_name("b.example", 80).allowed
    again = denied.allowing("a.example")
    assert again.decide_name("a.example", 80).allowed
    wide = policy.denying("*.example").allowing("a.example")
    assert not wide.decide_name("a.example", 80).allowed, "another deny rule still wins"


def test_a_ceiling_has_to_allow_everything_too() -> None:
    ceiling = policy_of(
        allow=["*.example:443", "GET api.example/v1/*"],
        deny=["secret.example"],
        budget=Budget(connections=5, bytes_out=10**15),
    )
    policy = policy_of(
        allow=["*", "10.0.0.1", "0.0.0.0/0"],
        hosts={"in.example": "10.0.0.1", "fine.example": "8.8.8.8"},
        budget=Budget(connections=100),
    ).under(ceiling)
    assert policy.decide_name("www.example", 443).allowed
    assert not policy.decide_name("www.example", 80).allowed
    assert not policy.decide_name("other.org", 443).allowed
    assert not policy.decide_name("secret.example", 443).allowed
    assert not policy.decide_address("10.0.0.1", 443, name=None).allowed
    assert not policy.decide_address("10.0.0.1", 443, name="in.example").allowed, (
        "not the ceiling's"
    )
    assert not policy.decide_address("8.8.8.8", 443, name="fine.example").allowed, "by hosts only"
    assert policy.decide_address("8.8.8.8", 443, name="www.example").allowed
    assert policy.decide_name("api.example", 80).inspected
    assert not policy.decide_request("api.example", 80, "POST", "/v1/x").allowed
    assert policy.decide_request("api.example", 80, "GET", "/v1/x").allowed
    assert policy.budget == Budget(connections=5)
    assert "the ceiling of this sandbox" in policy.decide_name("other.org", 443).reason
    grown = policy.allowing("other.org")
    assert not grown.decide_name("other.org", 443).allowed
    with pytest.raises(ValueError, match=r"'\*' exceeds what may be allowed here: \*\.example:443"):
        policy.require_within(ceiling)
    policy_of(allow=["www.example:443", "GET api.example/v1/x"]).require_within(ceiling)


def test_hosts_and_proxy_of_a_ceiling_are_used() -> None:
    ceiling = policy_of(
        allow=["*.example", "10.0.0.7:80"], hosts={"in.example": "10.0.0.5"}, proxy="environment"
    )
    policy = policy_of(
        allow=["*.example"], hosts={"own.example": "10.0.0.7"}, proxy="http://elsewhere:1"
    ).under(ceiling)
    assert policy.mapped("in.example", 80) == ("10.0.0.5", 80)
    assert policy.decide_address("10.0.0.5", 80, name="in.example").allowed
    assert policy.decide_address("10.0.0.7", 80, name="own.example").allowed, "the ceiling names it"
    assert not policy.decide_address("10.0.0.7", 81, name="own.example").allowed
    assert policy.proxy == "environment"


def test_a_host_with_secrets_of_the_ceiling_stays_where_it_is() -> None:
    ceiling = policy_of(
        allow=["*.example", "127.0.0.1"], secrets={"api.example": {"Key": "s3cret"}}
    )
    policy_of(hosts={"own.example": "127.0.0.1:80"}).require_within(ceiling)
    with pytest.raises(ValueError, match=r"api\.example may not be at 127\.0\.0\.1:80 here"):
        policy_of(hosts={"api.example": "127.0.0.1:80"}).require_within(ceiling)


def test_decisions_with_the_most_rules_are_fast() -> None:
    """They are made with the sandbox's lock held."""
    names = [f"h{number}.example" for number in range(2048)]
    networks = [f"10.{number >> 8}.{number & 255}.0/24" for number in range(2048)]
    secrets = {f"s{number}.example": {"Key": "x"} for number in range(4096)}
    policy = policy_of(allow=[*names, *networks], deny=networks[::-1], secrets=secrets)
    policy.decide_address("10.9.9.9", 80, name=None)
    began = time.process_time()
    for _ in range(10):
        policy.decide_name("h2047.example", 80)
        policy.decide_address("11.1.1.1", 80, name="h2047.example")
    assert (time.process_time() - began) / 10 < 0.1


def test_a_policy_can_be_sent_to_another_process() -> None:
    policy = policy_of(
        allow=["GET a.example/x"], hosts={"a.example": "::1"}, secrets={"a.example": {"X": "y"}}
    )
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_too_many_rules_are_refused() -> None:
    rules = [parse_rule(f"h{number}.example") for number in range(4096)]
    policy = policy_of(allow=rules)
    with pytest.raises(ValueError, match="at most 4096 rules"):
        policy.allowing("one.more.example")
