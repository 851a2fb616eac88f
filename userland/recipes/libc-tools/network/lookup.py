#!/usr/bin/python3
"""host and dig, for the look-ups that scripts make.

Owns both commands; the name it is started by decides. Rules: questions go to the name server of
/etc/resolv.conf, or to the one that is named, by UDP; options of the originals that only change how
the question is sent are accepted and ignored; statuses are those of the originals: host 1 if there
is no answer, dig 9 if the server does not answer.
"""

from __future__ import annotations

import ipaddress
import os
import random
import socket
import struct
import sys
import time

TYPES = {
    "A": 1, "NS": 2, "CNAME": 5, "SOA": 6, "PTR": 12, "MX": 15, "TXT": 16, "AAAA": 28, "SRV": 33,
    "HTTPS": 65, "CAA": 257, "ANY": 255,
}  # fmt: skip
TYPE_NAMES = {number: name for name, number in TYPES.items()}
STATUSES = ("NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED")
PHRASES = {
    "A": "has address", "AAAA": "has IPv6 address", "CNAME": "is an alias for",
    "PTR": "domain name pointer", "MX": "mail is handled by", "NS": "name server",
    "TXT": "descriptive text",
}  # fmt: skip
TIMEOUT = 5.0
USAGE = {
    "host": "Usage: host [-t TYPE] [-v] NAME [SERVER]",
    "dig": "Usage: dig [@SERVER] [-p PORT] [-x ADDRESS] NAME [TYPE] [+short] [+noall +answer]",
}


class Answer:
    """A reply of a name server."""

    def __init__(self, message: bytes, server: str, port: int, took: float) -> None:
        self.message, self.server, self.port, self.took = message, server, port, took
        self.identifier, self.flags, questions, answers, _, _ = struct.unpack(">6H", message[:12])
        position = 12
        for _ in range(questions):
            _, position = self.name_at(position)
            position += 4
        self.records: list[tuple[str, int, str, str]] = []
        for _ in range(answers):
            name, position = self.name_at(position)
            kind, _, life, size = struct.unpack(">HHIH", message[position : position + 10])
            position += 10
            type_name = TYPE_NAMES.get(kind, f"TYPE{kind}")
            self.records.append((name, life, type_name, self.text(kind, position, size)))
            position += size

    @property
    def status(self) -> str:
        code = self.flags & 15
        return STATUSES[code] if code < len(STATUSES) else str(code)

    def name_at(self, position: int) -> tuple[str, int]:
        """The name at a position, with a dot at its end, and the position after it."""
        labels, after, jumps = [], 0, 0
        while size := self.message[position]:
            if size >= 0xC0:
                after = after or position + 2
                position = struct.unpack(">H", self.message[position : position + 2])[0] & 0x3FFF
                jumps += 1
                if jumps > 64:
                    raise ValueError("a name that points to itself")
                continue
            label = self.message[position + 1 : position + 1 + size]
            labels.append(label.decode("ascii", "replace"))
            position += 1 + size
        return ".".join(labels) + ".", after or position + 1

    def text(self, kind: int, position: int, size: int) -> str:
        """The data of a record, as a zone file has it."""
        data = self.message[position : position + size]
        if kind in (TYPES["A"], TYPES["AAAA"]):
            return str(ipaddress.ip_address(data))
        if kind in (TYPES["CNAME"], TYPES["NS"], TYPES["PTR"]):
            return self.name_at(position)[0]
        if kind == TYPES["MX"]:
            return f"{struct.unpack('>H', data[:2])[0]} {self.name_at(position + 2)[0]}"
        if kind == TYPES["TXT"]:
            parts = []
            while data:
                parts.append('"' + data[1 : 1 + data[0]].decode("utf-8", "replace") + '"')
                data = data[1 + data[0] :]
            return " ".join(parts)
        return f"\\# {size} {data.hex().upper()}"


def name_server() -> str:
    """The first name server of /etc/resolv.conf."""
    try:
        with open("/etc/resolv.conf") as lines:
            for line in lines:
                words = line.split()
                if words[:1] == ["nameserver"] and len(words) > 1:
                    return words[1]
    except OSError:
        pass
    return "127.0.0.1"


def reverse(address: str) -> str:
    """The name that has the name of an address."""
    return ipaddress.ip_address(address).reverse_pointer


def ask(name: str, kind: int, server: str, port: int) -> Answer:
    """The server's answer; `TimeoutError` if it does not answer."""
    labels = [label.encode("idna") for label in name.rstrip(".").split(".") if label]
    identifier = random.randrange(65536)
    question = b"".join(bytes([len(label)]) + label for label in labels) + b"\0"
    message = struct.pack(">6H", identifier, 0x0100, 1, 0, 0, 0) + question
    message += struct.pack(">HH", kind, 1)
    family, _, _, _, address = socket.getaddrinfo(server, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as link:
        link.connect(address)
        link.settimeout(TIMEOUT)
        began = time.monotonic()
        link.send(message)
        while True:
            reply = link.recv(65535)
            if reply[:2] == message[:2]:
                return Answer(reply, str(address[0]), port, time.monotonic() - began)


def is_address(text: str) -> bool:
    """Whether a word is an address, not a name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def host(words: list[str]) -> int:
    """The command host; returns its status."""
    kinds: list[str] = []
    names: list[str] = []
    while words:
        word = words.pop(0)
        if word == "-t" and words:
            kinds.append(words.pop(0).upper())
        elif word in ("-W", "-R", "-N", "-c", "-m", "-p") and words:
            words.pop(0)
        elif not word.startswith("-"):
            names.append(word)
    unknown = [kind for kind in kinds if kind not in TYPES]
    if not 1 <= len(names) <= 2 or unknown:
        print(f"host: invalid type: {unknown[0]}" if unknown else USAGE["host"], file=sys.stderr)
        return 2 if unknown else 1
    name, server = names[0], names[1] if len(names) == 2 else name_server()
    if is_address(name):
        name, kinds = reverse(name), kinds or ["PTR"]
    shown = name.rstrip(".")
    found = False
    for kind in kinds or ["A", "AAAA", "MX"]:
        answer = ask(name, TYPES[kind], server, 53)
        if answer.status != "NOERROR":
            code = answer.flags & 15
            print(f"Host {shown} not found: {code}({answer.status})")
            return 1
        for owner, _, type_name, text in answer.records:
            print(owner.rstrip("."), PHRASES.get(type_name, f"has {type_name} record"), text)
            found = True
        if kinds and not answer.records:
            print(f"{shown} has no {kind} record")
    return 0 if found or kinds else 1


def dig(words: list[str]) -> int:
    """The command dig; returns its status."""
    name, kind, server, port = ".", "A", name_server(), 53
    named = False
    short, all_parts, answer_part = False, True, True
    while words:
        word = words.pop(0)
        if word.startswith("@"):
            server = word[1:]
        elif word == "-p" and words:
            port = int(words.pop(0))
        elif word == "-x" and words:
            name, kind, named = reverse(words.pop(0)), "PTR", True
        elif word in ("-t", "-q") and words:
            if word == "-t":
                kind = words.pop(0).upper()
            else:
                name, named = words.pop(0), True
        elif word == "+short":
            short = True
        elif word == "+noall":
            all_parts = answer_part = False
        elif word == "+answer":
            answer_part = True
        elif word.startswith(("+", "-")):
            continue
        elif word.upper() in TYPES and named:
            kind = word.upper()
        elif word.upper() != "IN":
            name, named = word, True
    if kind not in TYPES:
        print(f"dig: unknown type {kind}\n{USAGE['dig']}", file=sys.stderr)
        return 1
    answer = ask(name, TYPES[kind], server, port)
    if short:
        for record in answer.records:
            print(record[3])
        return 0
    flags = [
        text
        for bit, text in ((0x8000, "qr"), (0x0400, "aa"), (0x0100, "rd"), (0x0080, "ra"))
        if answer.flags & bit
    ]
    if all_parts:
        print(f"\n; <<>> dig <<>> {name} {kind}\n;; Got answer:")
        print(f";; ->>HEADER<<- opcode: QUERY, status: {answer.status}, id: {answer.identifier}")
        print(f";; flags: {' '.join(flags)}; QUERY: 1, ANSWER: {len(answer.records)}\n")
        print(f";; QUESTION SECTION:\n;{name.rstrip('.')}.\t\tIN\t{kind}\n")
        if answer.records:
            print(";; ANSWER SECTION:")
    if answer_part:
        for owner, life, type_name, text in answer.records:
            print(f"{owner}\t\t{life}\tIN\t{type_name}\t{text}")
    if all_parts:
        print(f"\n;; Query time: {answer.took * 1000:.0f} msec")
        print(f";; SERVER: {answer.server}#{answer.port}({server}) (UDP)\n")
    return 0


def main() -> int:
    """Run the command whose name this file was started by."""
    command = os.path.basename(sys.argv[0])
    words = sys.argv[1:]
    if not words or words[0] in ("-h", "--help"):
        print(USAGE[command], file=sys.stdout if words else sys.stderr)
        return 0 if words else 1
    try:
        return host(words) if command == "host" else dig(words)
    except (TimeoutError, ConnectionError):
        print(";; no servers could be reached")
    except (OSError, ValueError, IndexError, struct.error, UnicodeError) as problem:
        print(f"{command}: {problem}", file=sys.stderr)
    return 1 if command == "host" else 9


if __name__ == "__main__":
    sys.exit(main())
