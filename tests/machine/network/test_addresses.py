"""Which addresses are public, in all their forms."""

from __future__ import annotations

import ipaddress

import pytest

from wasmsand.machine.network.addresses import (
    AddressKind,
    embedded,
    is_numeric,
    kind_of,
    legacy_address,
    names_private,
    parse_address,
)

PUBLIC = AddressKind.PUBLIC


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("8.8.8.8", PUBLIC),
        ("1.0.0.1", PUBLIC),
        ("172.15.255.255", PUBLIC),
        ("172.32.0.0", PUBLIC),
        ("100.63.255.255", PUBLIC),
        ("198.20.0.1", PUBLIC),
        ("2606:4700::1111", PUBLIC),
        ("2a00:1450:4001::200e", PUBLIC),
        ("127.0.0.1", AddressKind.LOOPBACK),
        ("127.255.255.254", AddressKind.LOOPBACK),
        ("::1", AddressKind.LOOPBACK),
        ("0.0.0.0", AddressKind.RESERVED),
        ("0.1.2.3", AddressKind.RESERVED),
        ("::", AddressKind.RESERVED),
        ("10.0.0.0", AddressKind.PRIVATE),
        ("10.255.255.255", AddressKind.PRIVATE),
        ("172.16.0.1", AddressKind.PRIVATE),
        ("172.31.255.255", AddressKind.PRIVATE),
        ("192.168.1.1", AddressKind.PRIVATE),
        ("100.64.0.1", AddressKind.PRIVATE),
        ("fc00::1", AddressKind.PRIVATE),
        ("fdff::1", AddressKind.PRIVATE),
        ("fec0::1", AddressKind.PRIVATE),
        ("169.254.1.1", AddressKind.LINK_LOCAL),
        ("fe80::1", AddressKind.LINK_LOCAL),
        ("169.254.169.254", AddressKind.METADATA),
        ("169.254.170.2", AddressKind.METADATA),
        ("100.100.100.200", AddressKind.METADATA),
        ("168.63.129.16", AddressKind.METADATA),
        ("fd00:ec2::254", AddressKind.METADATA),
        ("224.0.0.1", AddressKind.MULTICAST),
        ("239.255.255.250", AddressKind.MULTICAST),
        ("ff02::1", AddressKind.MULTICAST),
        ("255.255.255.255", AddressKind.RESERVED),
        ("240.0.0.1", AddressKind.RESERVED),
        ("192.0.2.1", AddressKind.RESERVED),
        ("198.18.0.1", AddressKind.RESERVED),
        ("198.19.255.255", AddressKind.RESERVED),
        ("2001:db8::1", AddressKind.RESERVED),
        ("3fff::1", AddressKind.RESERVED),
        ("100::1", AddressKind.RESERVED),
        ("5f00::1", AddressKind.RESERVED),
        ("4000::1", AddressKind.RESERVED),
    ],
)
def test_the_kind_of_an_address(text: str, kind: AddressKind) -> None:
    assert kind_of(ipaddress.ip_address(text)) is kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("::ffff:127.0.0.1", AddressKind.LOOPBACK),
        ("::ffff:8.8.8.8", PUBLIC),
        ("::ffff:a9fe:a9fe", AddressKind.METADATA),
        ("::127.0.0.1", AddressKind.LOOPBACK),
        ("::8.8.8.8", AddressKind.RESERVED),
        ("::ffff:0:10.0.0.1", AddressKind.PRIVATE),
        ("64:ff9b::10.0.0.1", AddressKind.PRIVATE),
        ("64:ff9b::127.0.0.1", AddressKind.LOOPBACK),
        ("64:ff9b::8.8.8.8", PUBLIC),
        ("64:ff9b:1::8.8.8.8", AddressKind.PRIVATE),
        ("2002:7f00:1::", AddressKind.LOOPBACK),
        ("2002:a00:1::1", AddressKind.PRIVATE),
        ("2002:808:808::1", PUBLIC),
        ("2001:0:808:808:0:0:80ff:fffe", AddressKind.LOOPBACK),  # client 127.0.0.1, inverted
        ("2001:0:a00:1::", AddressKind.PRIVATE),  # the server is 10.0.0.1
        ("2606:4700::5efe:10.0.0.1", AddressKind.PRIVATE),  # ISATAP
        ("2606:4700::200:5efe:192.168.0.1", AddressKind.PRIVATE),
    ],
)
def test_an_address_inside_another_decides(text: str, kind: AddressKind) -> None:
    assert kind_of(ipaddress.ip_address(text)) is kind


def test_a_zone_does_not_hide_an_address() -> None:
    assert kind_of(ipaddress.ip_address("fe80::1%eth0")) is AddressKind.LINK_LOCAL
    assert kind_of(ipaddress.ip_address("::1%1")) is AddressKind.LOOPBACK


def test_embedded_addresses_of_a_tunnel() -> None:
    teredo = ipaddress.ip_address("2001:0:808:808:0:0:80ff:fffe")
    assert [str(one) for one in embedded(teredo)] == ["8.8.8.8", "127.0.0.1"]
    assert embedded(ipaddress.ip_address("10.0.0.1")) == ()


@pytest.mark.parametrize(
    "text", ["127.1", "0x7f.0.0.1", "2130706433", "0177.0.0.1", "127.0.0.01", "127.0.0.1.", ""]
)
def test_unusual_forms_are_no_addresses(text: str) -> None:
    assert parse_address(text) is None


def test_a_mapped_address_is_the_ipv4_address() -> None:
    assert parse_address("::FFFF:10.1.2.3") == ipaddress.ip_address("10.1.2.3")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0X7F.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("4294967295", "255.255.255.255"),
        ("0", "0.0.0.0"),
    ],
)
def test_numbers_are_recognised_as_addresses(host: str, address: str) -> None:
    assert is_numeric(host)
    assert str(legacy_address(host)) == address


@pytest.mark.parametrize(
    "host", ["4294967296", "256.0.0.1", "1.2.3.4.5", "08.0.0.1", "a.1", "1..2", "-4.1", "1_0.1"]
)
def test_numeric_hosts_that_are_no_address(host: str) -> None:
    assert is_numeric(host)
    assert legacy_address(host) is None


@pytest.mark.parametrize(
    "host", ["example.com", "1e100.net", "0x.com", "a", "1password", "3com.com"]
)
def test_names_with_digits_are_names(host: str) -> None:
    assert not is_numeric(host)


@pytest.mark.parametrize(
    ("network", "address", "meant"),
    [
        ("10.0.0.0/8", "10.1.2.3", True),
        ("10.1.2.3/32", "10.1.2.3", True),
        ("127.0.0.0/8", "127.0.0.1", True),
        ("0.0.0.0/0", "10.1.2.3", False),
        ("0.0.0.0/0", "127.0.0.1", False),
        ("8.0.0.0/6", "10.1.2.3", False),
        ("::/0", "::1", False),
        ("fc00::/7", "fd12::1", True),
        ("169.254.0.0/16", "169.254.1.1", True),
        ("169.254.0.0/16", "169.254.169.254", False),
        ("169.254.169.254/32", "169.254.169.254", True),
        ("100.64.0.0/10", "100.100.100.200", False),
    ],
)
def test_a_network_means_private_addresses_only_if_it_is_private_itself(
    network: str, address: str, meant: bool
) -> None:
    assert names_private(ipaddress.ip_network(network), ipaddress.ip_address(address)) is meant
