"""Rules: their form, what is malformed, and what they match."""

from __future__ import annotations

import ipaddress
import sys

import pytest

from wasmsand.machine.network.rules import Rule, RuleProblem, parse_rule


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("api.example.com", "api.example.com"),
        ("API.Example.COM.", "api.example.com"),
        ("  api.example.com  ", "api.example.com"),
        ("*.Example.com:443", "*.example.com:443"),
        ("*", "*"),
        ("*:443", "*:443"),
        ("localhost:1", "localhost:1"),
        ("a.b:65535", "a.b:65535"),
        ("_dmarc.example.com", "_dmarc.example.com"),
        ("xn--mnchen-3ya.de", "xn--mnchen-3ya.de"),
        ("münchen.de", "xn--mnchen-3ya.de"),
        ("MÜNCHEN。de", "xn--mnchen-3ya.de"),
        ("*.bücher.example:80", "*.xn--bcher-kva.example:80"),
        ("faß.de", "xn--fa-hia.de"),
        ("\u0430pi.example.com", "xn--pi-6kc.example.com"),  # a Cyrillic letter is another name
        ("10.1.2.3", "10.1.2.3"),
        ("10.1.2.3:80", "10.1.2.3:80"),
        ("10.1.2.3/32", "10.1.2.3"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("10.0.0.0/8:443", "10.0.0.0/8:443"),
        ("10.0.0.0/8/v1", "10.0.0.0/8/v1"),
        ("10.1.2.3/v1", "10.1.2.3/v1"),
        ("10.1.2.3:80/8", "10.1.2.3:80/8"),
        ("0.0.0.0/0", "0.0.0.0/0"),
        ("2001:DB8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:443", "[2001:db8::1]:443"),
        ("2001:db8::/32", "2001:db8::/32"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("[2001:db8::]/32:443", "[2001:db8::/32]:443"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("get,HEAD api.example.com/v1/*", "GET,HEAD api.example.com/v1/*"),
        ("POST api.example.com", "POST api.example.com"),
        ("api.example.com/%7Euser/%c3%a9", "api.example.com/~user/%C3%A9"),
        ("api.example.com:8443/", "api.example.com:8443/"),
    ],
)
def test_a_rule_has_a_normal_form(text: str, normal: str) -> None:
    rule = parse_rule(text)
    assert str(rule) == normal
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("   ", "it is empty"),
        ("https://api.example.com/v1", "leave out the scheme: 'api.example.com/v1'"),
        ("user:secret@api.example.com", "no user name or password"),
        ("api.example.com@evil.example", "no user name or password"),
        ("a*.example.com", "'*' stands only at the start"),
        ("api.*.com", "'*' stands only at the start"),
        ("*.*.com", "'*' stands only at the start"),
        ("*example.com", "'*' stands only at the start"),
        ("**", "'*' stands only at the start"),
        ("*.", "the host name is empty"),
        (".", "the host name is empty"),
        (":443", "the host name is empty"),
        ("/v1", "the host name is empty"),
        ("api..example.com", "a part between two dots is empty"),
        (".example.com", "a part between two dots is empty"),
        ("example.com..", "a part between two dots is empty"),
        (f"{'a' * 64}.com", "at most 63 characters"),
        (f"{'a.' * 127}com", "at most 253 characters"),
        ("-a.com", "is not a part of a host name"),
        ("a-.com", "is not a part of a host name"),
        ("a b.com", "'a' is not"),
        ("a,b.com", "is not a part of a host name"),
        ("a\\b.com", "is not a part of a host name"),
        ("a%2eb.com", "is not a part of a host name"),
        ("one two three", "more than two words"),
        ("a.com\n", "control character"),
        ("a\0.com", "control character"),
        ("api.example.com:", "'' is not a port"),
        ("api.example.com:0", "0 is not a port; a port is 1 to 65535"),
        ("api.example.com:65536", "65536 is not a port"),
        ("api.example.com:99999999999", "is not a port"),
        ("api.example.com:-1", "is not a port"),
        ("api.example.com:http", "'http' is not a port"),
        ("api.example.com:\uff18\uff10", "is not a port"),
        ("api.example.com:80:90", "is not an address or a network"),
        ("2130706433", "write the address as 127.0.0.1"),
        ("0x7f.1", "write the address as 127.0.0.1"),
        ("0177.0.0.1", "write the address as 127.0.0.1"),
        ("127.1", "write the address as 127.0.0.1"),
        ("256.1.1.1", "is not an address"),
        ("1.2.3.4.5", "is not an address"),
        ("example.0x1", "is not an address"),
        ("10.1.2.3/8", "the network of this length is 10.0.0.0/8"),
        ("10.0.0.0/33", "is not an address or a network"),
        ("2001:db8::1/32", "the network of this length is 2001:db8::/32"),
        ("fe80::1%eth0", "an address has no zone"),
        ("[fe80::1%25eth0]:80", "an address has no zone"),
        ("::ffff:10.0.0.0/104", "in its IPv4 form"),
        ("[::1", "'[' without ']'"),
        ("[example.com]", "only an IPv6 address is written in [ ]"),
        ("[10.0.0.1]", "only an IPv6 address is written in [ ]"),
        ("api.example.com/v1?key=1", "queries are not part of rules"),
        ("api.example.com/v1#top", "queries are not part of rules"),
        ("api.example.com/*/x", "'*' in a path stands only at its end"),
        ("api.example.com/../x", "'/../'"),
        ("api.example.com/a/%2e%2e/x", "'/../'"),
        ("api.example.com//x", "'//'"),
        ("api.example.com/a%2fb", "means different things"),
        ("api.example.com/é", "only ASCII letters"),
        ("api.example.com/%zz", "two hexadecimal digits"),
        ("CONNECT api.example.com", "CONNECT would open a tunnel"),
        ("api.example.com GET", "is not an HTTP method"),
        ("GET, api.example.com", "is not an HTTP method"),
        ("GET;POST api.example.com", "is not an HTTP method"),
        ("\u2488com", "in no host name"),  # "1." as one character
        ("127.0.0.\uff11", "write the address 127.0.0.1"),
        ("\uff11\uff12\uff17.0.0.1", "is not an address"),
        ("a" * 3000, "more than 2048 characters"),
    ],
)
def test_a_malformed_rule_shows_the_right_form(text: str, why: str) -> None:
    with pytest.raises(RuleProblem) as raised:
        parse_rule(text)
    message = str(raised.value)
    assert why in message
    assert '"GET,HEAD api.example.com/v1/*"' in message
    assert message.isascii()
    assert "\n" not in message
    assert len(message) < 600


@pytest.mark.parametrize("text", [None, 1, b"example.com", ["example.com"]])
def test_a_rule_is_a_string(text: object) -> None:
    with pytest.raises(RuleProblem, match="a rule is a string"):
        parse_rule(text)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "name", "matches"),
    [
        ("example.com", "example.com", True),
        ("example.com", "www.example.com", False),
        ("example.com", "badexample.com", False),
        ("*.example.com", "www.example.com", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("*.example.com", "example.com.evil.org", False),
        ("*", "anything.org", True),
        ("10.0.0.0/8", "10.0.0.1", False),
    ],
)
def test_names_that_a_rule_matches(rule: str, name: str, matches: bool) -> None:
    assert parse_rule(rule).matches_name(name) is matches


def test_a_rule_matches_addresses_of_its_own_version_only() -> None:
    rule = parse_rule("10.0.0.0/8")
    assert rule.matches_address(ipaddress.ip_address("10.9.9.9"))
    assert not rule.matches_address(ipaddress.ip_address("11.0.0.0"))
    assert not rule.matches_address(ipaddress.ip_address("::a09:909"))


@pytest.mark.parametrize(
    ("rule", "method", "path", "allowed"),
    [
        ("GET a.com", "GET", "/x", True),
        ("GET a.com", "get", "/x", False),
        ("GET a.com", "POST", "/x", False),
        ("a.com/v1", "GET", "/v1", True),
        ("a.com/v1", "GET", "/v1/", False),
        ("a.com/v1", "GET", "/v12", False),
        ("a.com/v1/*", "GET", "/v1/", True),
        ("a.com/v1/*", "GET", "/v1/a/b", True),
        ("a.com/v1/*", "GET", "/v1", False),
        ("a.com/v1*", "GET", "/v12", True),
        ("a.com/*", "GET", "/", True),
        ("a.com/v1/*", "GET", None, False),
        ("a.com", "GET", None, True),
    ],
)
def test_requests_that_a_rule_allows(
    rule: str, method: str, path: str | None, allowed: bool
) -> None:
    assert parse_rule(rule).allows_request(method, path) is allowed


@pytest.mark.parametrize(
    ("rule", "method", "path", "denied"),
    [
        ("POST a.com", "POST", "/x", True),
        ("POST a.com", "post", "/x", True),
        ("POST a.com", "GET", "/x", False),
        ("a.com/admin", "GET", "/admin", True),
        ("a.com/admin", "GET", "/admin/", True),
        ("a.com/admin", "GET", "/ADMIN/users", True),
        ("a.com/admin", "GET", "/admin;x=1/users", True),
        ("a.com/admin", "GET", "/administrator", False),
        ("a.com/admin*", "GET", "/administrator", True),
        ("a.com/admin/*", "GET", "/admin", True),
        ("a.com/", "GET", "/x", True),
        ("a.com/admin", "GET", None, True),
        ("POST a.com/admin", "GET", None, False),
    ],
)
def test_requests_that_a_rule_denies(
    rule: str, method: str, path: str | None, denied: bool
) -> None:
    assert parse_rule(rule).denies_request(method, path) is denied


@pytest.mark.parametrize(
    ("inner", "outer", "within"),
    [
        ("a.com", "a.com", True),
        ("a.com:443", "a.com", True),
        ("a.com", "a.com:443", False),
        ("a.com:80", "a.com:443", False),
        ("w.a.com", "*.a.com", True),
        ("*.w.a.com", "*.a.com", True),
        ("*.a.com", "*.a.com", True),
        ("a.com", "*.a.com", False),
        ("*", "*.a.com", False),
        ("*.a.com", "a.com", False),
        ("a.com", "*", True),
        ("*", "*", True),
        ("10.0.0.1", "*", False),
        ("10.0.0.1", "10.0.0.0/8", True),
        ("10.0.0.0/8", "10.0.0.0/16", False),
        ("10.0.0.1", "0.0.0.0/0", False),
        ("8.8.8.8", "0.0.0.0/0", True),
        ("0.0.0.0/0", "0.0.0.0/0", True),
        ("169.254.169.254", "169.254.0.0/16", False),
        ("::1", "0.0.0.0/0", False),
        ("GET a.com", "a.com", True),
        ("a.com", "GET a.com", False),
        ("GET a.com", "GET,POST a.com", True),
        ("GET,PUT a.com", "GET,POST a.com", False),
        ("a.com/v1", "a.com/v1/*", False),
        ("a.com/v1/x", "a.com/v1/*", True),
        ("a.com/v1/x*", "a.com/v1/*", True),
        ("a.com/*", "a.com/v1/*", False),
        ("a.com/v1*", "a.com/v1/*", False),
        ("a.com", "a.com/v1/*", False),
    ],
)
def test_whether_a_rule_is_within_another(inner: str, outer: str, within: bool) -> None:
    assert parse_rule(inner).is_within(parse_rule(outer)) is within


def test_letters_of_other_languages_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "idna", None)
    with pytest.raises(RuleProblem, match=r"pip install 'wasmsand\[network\]'; or write xn--"):
        parse_rule("münchen.de")
    assert parse_rule("xn--mnchen-3ya.de").host == "xn--mnchen-3ya.de"


def test_a_rule_is_a_plain_value() -> None:
    assert parse_rule("a.com") == Rule("a.com")
    assert hash(parse_rule("A.com:1")) == hash(parse_rule("a.com:1"))
