"""Names inside a sandbox: who may be looked up, and what addresses stand for."""

from __future__ import annotations

import struct
import threading
import time

import pytest

from tests.machine.network.servers import PATIENCE, echo, machine, only_event, python, run, server
from wasmsand.kernel.limits import NETWORK_NAMES_MAX, NETWORK_WAITING_MAX
from wasmsand.machine.network import dns
from wasmsand.machine.network.names import GUEST, NAMESERVER, NameTable, is_reserved
from wasmsand.machine.network.resolving import HostAddresses, TooManyLookups


def resolving(guest_resolve: dict[str, tuple[str, ...]], made):  # type: ignore[no-untyped-def]
    """Let a machine's bridge look up names in a table instead of the host's name service."""
    made.bridge.outgoing.resolve_with(lambda name: guest_resolve.get(name, ()))
    return made


def test_an_allowed_name_has_an_address_of_its_own_that_leads_back_to_it() -> None:
    with machine("*.test") as made:
        guest = resolving({"one.test": ("192.0.2.1",), "two.test": ("192.0.2.1",)}, made)
        program = """
one, two = socket.gethostbyname("one.test"), socket.gethostbyname("TWO.test.")
print(one, two, socket.gethostbyname("one.test") == one)
print(socket.gethostbyaddr(one)[0])
try: socket.gethostbyname("three.test")
except OSError as error: print(error)
"""
        assert python(guest, program).splitlines() == [
            "198.18.1.0 198.18.1.1 True",
            "one.test",
            "[Errno -2] Name does not resolve",
        ]


def test_without_a_network_every_look_up_fails_at_once_and_says_why() -> None:
    with machine() as guest:
        began = time.monotonic()
        out, err = run(guest, "bash", "-c", "getent hosts example.com; exec 3<>/dev/tcp/a.test/80")
        assert time.monotonic() - began < 4
        assert out == ""
        assert "look-up of example.com refused" in err
        assert "add 'example.com' to network.allow" in err or "no network" in err
        assert python(guest, "print(socket.gethostbyname('localhost'))") == "127.0.0.1\n"


def test_a_name_outside_ascii_does_not_exist_at_once() -> None:
    for names in ((), ("*",)):
        with machine(*names) as guest:
            program = """
began = time.monotonic()
try: socket.getaddrinfo(b"b\\xc3\\xbc.example", 80)
except OSError as error: print(error, time.monotonic() - began < 4)
"""
            assert (
                python(guest, "import time\n" + program)
                == "[Errno -2] Name does not resolve True\n"
            )


def test_a_name_whose_answer_changes_is_decided_by_the_address_that_is_connected_to() -> None:
    """DNS rebinding: the second answer is the host's own loopback."""
    with server(echo) as port, machine("rebind.test") as guest:
        answers = [("203.0.113.7",), ("127.0.0.1",), ("::ffff:127.0.0.1",), ("::1",)]
        asked: list[str] = []

        def resolve(name: str) -> tuple[str, ...]:
            asked.append(name)
            return answers[min(len(asked) - 1, 3)]

        guest.bridge.outgoing.resolve_with(resolve, fresh_seconds=0)
        program = f"""
address = socket.gethostbyname("rebind.test")
for _ in range(3):
    try: socket.create_connection((address, {port}))
    except OSError as error: print(errno.errorcode[error.errno])
"""
        out, err = run(guest, "python3", "-c", "import errno, socket\n" + program)
        assert out == "ENETUNREACH\n" * 3
        assert "leads to 127.0.0.1, a loopback address" in err
        assert len(asked) >= 4


def test_a_name_that_leads_to_several_addresses_is_tried_until_one_answers() -> None:
    with server(echo) as port, machine("multi.test", "127.0.0.1", "127.0.0.2") as made:
        guest = resolving({"multi.test": ("127.0.0.2", "10.0.0.1", "127.0.0.1")}, made)
        program = f"""
s = socket.create_connection(("multi.test", {port})); s.sendall(b"x"); print(s.recv(1))
print(s.getpeername()[0])
"""
        # The guest sees the address that stands for the name, never the real one.
        assert python(guest, program) == "b'x'\n198.18.1.0\n"
        event = only_event(guest)
        assert event.address == "127.0.0.1"


def test_the_number_of_names_is_bounded() -> None:
    table = NameTable()
    addresses = [table.address_of(f"{n}.test") for n in range(NETWORK_NAMES_MAX)]
    assert len(set(addresses)) == NETWORK_NAMES_MAX
    assert table.address_of("more.test") is None
    assert table.address_of("7.test") == addresses[7]
    assert all(is_reserved(address) for address in addresses if address is not None)
    assert addresses[7] is not None
    assert table.name_of(addresses[7]) == "7.test"
    assert table.name_of(GUEST) is None
    assert not is_reserved(bytes([198, 20, 0, 1]))
    assert not is_reserved(bytes([198, 17, 255, 255]))


def question(name: bytes, kind: int = dns.A, *, flags: int = 0x100, count: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label for label in name.split(b".") if label)
    return (
        struct.pack(">HHHHHH", 7, flags, count, 0, 0, 0) + labels + struct.pack(">BHH", 0, kind, 1)
    )


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"short",
        question(b"a.test")[:-1],
        question(b"a.test", flags=0x8100),
        question(b"a.test", flags=0x0900),
        question(b"a.test", count=2),
        question(b"a.test", count=0),
        question(b".".join([b"x" * 63] * 5)),
        struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\xc0\x0c" + bytes(4),
        struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\x03a.b\x00" + bytes([0, 1, 0, 1]),
        struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\x3f" + b"x" * 10,
    ],
)
def test_a_message_that_is_no_question_is_not_answered(message: bytes) -> None:
    with pytest.raises(dns.BadQuestion):
        dns.parse(message)


def test_an_answer_repeats_the_question_and_has_the_records() -> None:
    asked = dns.parse(question(b"Some.TEST"))
    assert (asked.identifier, asked.name, asked.kind) == (7, "some.test", dns.A)
    made = dns.answer(asked, dns.NO_ERROR, (NAMESERVER,))
    assert made[:4] == b"\x00\x07\x85\x80"
    assert made.endswith(b"\x00\x04" + NAMESERVER)
    assert b"\x04Some\x04TEST\x00" in made


def test_those_who_wait_for_one_slow_look_up_are_bounded() -> None:
    slow = threading.Event()
    told: list[tuple[str, ...]] = []

    def resolve(name: str) -> tuple[str, ...]:
        slow.wait(PATIENCE)
        return ("192.0.2.1",)

    addresses = HostAddresses(resolve)
    try:
        for _ in range(NETWORK_WAITING_MAX):
            assert addresses.find("slow.test", told.append) is None
        with pytest.raises(TooManyLookups):
            addresses.find("slow.test", told.append)
    finally:
        slow.set()
    until = time.monotonic() + PATIENCE
    while len(told) < NETWORK_WAITING_MAX and time.monotonic() < until:
        time.sleep(0.01)
    assert told == [("192.0.2.1",)] * NETWORK_WAITING_MAX
    assert addresses.find("slow.test", told.append) == ("192.0.2.1",)


def test_a_name_with_control_characters_does_not_exist_and_is_in_no_notice() -> None:
    with machine("allowed.test") as guest:
        program = (
            "import socket, struct\n"
            "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "label = b'x\\nwasmsand: all is well\\x1b[2J'\n"
            "head = struct.pack('>HHHHHH', 7, 256, 1, 0, 0, 0)\n"
            "question = head + bytes([len(label)]) + label + struct.pack('>BHH', 0, 1, 1)\n"
            "s.sendto(question, ('198.18.0.1', 53)); s.settimeout(5); print(s.recv(512)[3] & 15)"
        )
        assert run(guest, "python3", "-c", program) == ("3\n", "")
