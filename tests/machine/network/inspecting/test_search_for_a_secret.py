"""Everything of a sandbox is searched for an injected secret, and it is nowhere.

The same search finds a text that the guest does have, wherever it is, so it can fail.
"""

from __future__ import annotations

import base64
import gc
import logging
import textwrap
import types
from collections.abc import Iterator

import pytest

from tests.machine.network.inspecting.guests import inspected
from tests.machine.network.inspecting.private_authority import PrivateAuthority
from tests.machine.network.inspecting.servers import echo_server
from tests.machine.network.servers import ENVIRONMENT, PATIENCE
from wasmsand.kernel.errno import KernelError
from wasmsand.machine.command import CommandRequest
from wasmsand.machine.files import FileEntry
from wasmsand.machine.guest import Guest
from wasmsand.machine.machine import Machine
from wasmsand.machine.network.bridge import Bridge
from wasmsand.machine.network.inspecting.inspector import Inspector
from wasmsand.machine.network.inspecting.order import InspectionOrder
from wasmsand.machine.network.inspecting.secrets import Secrets

# Joined at run time, so that no constant of a compiled module contains them.
SECRET = "-".join(("sk", "injected", "f00d", "by", "the", "bridge"))
PLACEHOLDER_SECRET = "-".join(("token", "behind", "a", "placeholder", "9c1e"))
KNOWN = "-".join(("a", "text", "that", "the", "guest", "knows", "77ab"))

PROGRAM = """
import http.client, os, subprocess, sys, urllib.error, urllib.request

token = os.environ["API_TOKEN"]
known = "-".join(("a", "text", "that", "the", "guest", "knows", "77ab"))
def ask(method, url, body=None, **headers):
    request = urllib.request.Request(url, body, headers, method=method)
    try:
        with urllib.request.urlopen(request) as r: return str(r.headers) + r.read().decode()
    except urllib.error.HTTPError as error: return str(error.headers) + error.read().decode()
    except OSError as error: return repr(error)

results = [
    ask("GET", "https://api.test/a"),
    ask("GET", "https://api.test/reflect", Origin=token, X_Request_Id=token, Authorization=token),
    ask("GET", "https://api.test/reflect", **{"X-Request-Id": token}),
    ask("POST", "https://api.test/b", token.encode(), Cookie=token),
    ask("DELETE", "https://api.test/refused", Authorization=token),
    ask("TRACE", "https://api.test/trace"),
    ask("GET", "https://api.test/redirect"),
    ask("GET", "https://other.test/a", Authorization=token),
    ask("GET", "http://api.test/clear"),
    ask("GET", "https://api.test/status/500"),
    ask("GET", "https://broken.test/a"),
]
c = http.client.HTTPSConnection("api.test")
for head in (b"GET /x HTTP/1.1\\r\\nHost: evil.test\\r\\n\\r\\n", b"GET /x HTTP/1.1\\nA: b\\n\\n"):
    c.connect(); c.sock.sendall(head); results.append(repr(c.sock.recv(10000)))
open("/tmp/results", "w").write(repr(results) + known)
c = http.client.HTTPSConnection("api.test")  # stays open
c.request("GET", "/large/100000"); half = c.getresponse().read(5000)
child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, env={"KNOWN_TO_CHILD": known})
r, w = os.pipe(); os.write(w, b"in a pipe: " + known.encode())
print(len(results), known, flush=True)
print("problem", known, file=sys.stderr, flush=True)
sys.stdin.read()
"""


class Search:
    """Where each of some texts was found, as it is or in base64."""

    def __init__(self, *needles: str) -> None:
        self.found: dict[str, set[str]] = {needle: set() for needle in needles}
        self._forms = {needle: _forms_of(needle.encode()) for needle in needles}

    def look_in(self, place: str, data: bytes | bytearray | memoryview) -> None:
        text = bytes(data) if isinstance(data, memoryview) else data
        for needle, forms in self._forms.items():
            if any(form in text for form in forms):
                self.found[needle].add(place)


def _forms_of(needle: bytes) -> set[bytes]:
    return {needle, *(base64.b64encode(b"x" * pad + needle)[4:-4] for pad in range(3))}


def search(machine: Machine, search: Search) -> None:
    """Look everywhere in a sandbox."""
    guests = [
        value
        for value in gc.get_objects()
        if isinstance(value, Guest) and value.kernel is machine.kernel
    ]
    assert len(guests) >= 2  # Python and cat
    with machine.lock:
        for guest in guests:
            view = guest.instance.memory_view()
            assert view is not None
            search.look_in("memory", view)
    for entry in _files_that_are_not_of_the_image(machine):
        place = "environment" if entry.path.endswith("/environ") else "file"
        try:
            search.look_in(place, machine.files.read(entry.path))
        except KernelError:
            pass  # a process of /proc that has ended
    for value in _values_of(machine.kernel):
        search.look_in("kernel", value)
    search.look_in("log", repr(machine.bridge.log.events()).encode())
    shown = [machine, machine.bridge, machine.bridge.policy, machine.bridge.inspection]
    shown += [machine.options, machine.state(), *_inspecting_objects()]
    search.look_in("repr", " ".join(map(repr, shown)).encode())


def _files_that_are_not_of_the_image(machine: Machine) -> list[FileEntry]:
    fresh = Machine()
    image = set(fresh.files.tree("/"))
    fresh.close()
    found = [entry for entry in machine.files.tree("/") if entry.type == "file"]
    return [entry for entry in found if entry not in image or entry.path.startswith("/proc")]


def _inspecting_objects() -> list[object]:
    kinds = (Inspector, InspectionOrder, Secrets)
    return [value for value in gc.get_objects() if isinstance(value, kinds)]


def _values_of(root: object) -> Iterator[bytes | bytearray]:
    """All bytes and texts that the kernel's objects refer to, except by the bridge."""
    seen = {id(root)}
    waiting = [root]
    skipped = (
        Bridge,
        type,
        types.FunctionType,
        types.ModuleType,
        types.FrameType,
        types.MethodType,
    )
    while waiting:
        value = waiting.pop()
        if isinstance(value, bytes | bytearray):
            yield value
        elif isinstance(value, str):
            yield value.encode("utf-8", "surrogatepass")
        if isinstance(value, skipped):
            continue
        for other in gc.get_referents(value):
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(other)


def test_the_secret_is_nowhere_in_the_sandbox(
    private_authority: PrivateAuthority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with (
        echo_server(private_authority.context("api.test", "other.test")) as echo,
        echo_server(private_authority.context("api.test", expired=True)) as broken,
        inspected(
            private_authority,
            "GET,POST api.test",
            "GET other.test",
            "broken.test",
            hosts={
                "api.test": f"127.0.0.1:{echo.port}",
                "other.test": f"127.0.0.1:{echo.port}",
                "broken.test": f"127.0.0.1:{broken.port}",
            },
            secrets={
                "api.test": {"Authorization": f"Bearer {SECRET}"},
                "broken.test": {"Authorization": f"Bearer {SECRET}"},
            },
            placeholders={"api.test": {"{{API_TOKEN}}": PLACEHOLDER_SECRET}},
        ) as machine,
    ):
        environ = {**ENVIRONMENT, **machine.variables, "API_TOKEN": "{{API_TOKEN}}"}
        environ["KNOWN_TO_GUEST"] = KNOWN
        process = machine.start(
            CommandRequest(
                ("python3", "-c", textwrap.dedent(PROGRAM)),
                environ=environ,
                cwd="/tmp",
                stdin=None,
            )
        )
        output = b""
        while b"problem" not in output:
            pieces = process.read(PATIENCE)
            assert pieces, output
            output += b"".join(piece.data for piece in pieces)
        sent = str(echo.requests)
        looking = Search(SECRET, PLACEHOLDER_SECRET, KNOWN)
        looking.look_in("output", output)
        search(machine, looking)
        found = looking.found
        process.close_input()
        ended = process.wait(PATIENCE)
        assert ended is not None
        notices = " ".join(ended.notices)
    assert output.startswith(b"13 ")
    assert SECRET in sent  # the host got both
    assert PLACEHOLDER_SECRET in sent
    assert found[SECRET] == found[PLACEHOLDER_SECRET] == set()
    assert found[KNOWN] >= {"memory", "file", "environment", "output", "kernel"}
    assert "refused" in notices
    for needle in (SECRET, PLACEHOLDER_SECRET):
        assert needle not in notices
        assert needle not in caplog.text
