"""curl's own test suite: the tests of the command that use HTTP and HTTPS.

Owns which tests are run, how, and what the suite's output means. Tests are run by hundreds, since
their servers are slow to start; each of them is a case. Rules: the suite and its servers are native
on both sides, and only the curl under test differs: the reference build, or the image's, in a
sandbox for each run (`curl_guest.py`); tests of the library, which are C programs, are left out.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

from conformance.area import Area, ordinary_environment
from conformance.builds import BuildRequest, Built, built, put_program, reference_key
from conformance.curl_guest import curl_in_sandboxes
from conformance.native import NativeTemplate
from conformance.program_suite import ProgramSuite
from conformance.sandboxed import image_with
from conformance.suite import Outcome, Side, Verdict
from conformance.supplies import Workplace

_HELPERS = ("tests/server/servers", "src/curlinfo")
_KEYWORDS = {"HTTP", "HTTPS"}
_SERVERS = {
    "http", "https", "https-mtls", "http-ipv6", "http-proxy", "https-proxy", "socks4", "socks5",
}  # fmt: skip
"""The kinds of servers that chosen tests use. HTTP/2 and HTTP/3 need a proxy that Debian lacks or
that is not usual; Unix sockets of the host cannot be reached from a sandbox."""
_CLIENT = Path(__file__).with_name("curl_client.py")
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_TIMEOUT_SECONDS = 1200.0
_GROUP = 100
_OUTPUT = "output"
_PASSED = re.compile(r"^PASS: (\d+) - ", re.MULTILINE)
_FAILED = re.compile(r"^TESTFAIL: These test cases failed: (.*)$", re.MULTILINE)
_DONE = re.compile(r"^TESTDONE: ", re.MULTILINE)
_MESSAGE = re.compile(r"^(?:FAIL: \d+ - .*| \d+: .* FAILED.*|.* exit FAILED)$", re.MULTILINE)
_TAIL = 3_000


class CurlSuite(ProgramSuite):
    """Tests of the tarball that the curl recipe pins."""

    name = "curl"
    program = "curl"
    code = ("curl_suite.py", "curl_guest.py", "curl_client.py", "builds.py")

    @cached_property
    def _helpers(self) -> Built:
        request = BuildRequest(
            recipe=self.recipe,
            helpers=_HELPERS,
            make=("-C", "lib"),
            after=(
                "make -C src curlinfo",
                "make -C tests/server",
                "make -C tests/certs",
            ),
            files=("tests/certs", "tests/config", "tests/configurehelp.pm"),
        )
        return built(self.supplies, "native", request)

    @cached_property
    def _templates(self) -> dict[Side, NativeTemplate]:
        return {}

    def ingredients(self, side: Side) -> Sequence[str]:
        """See `ProgramSuite.ingredients`; the native curl looks after the servers on both sides."""
        return [self._helpers.folder.name, reference_key(self.supplies, self.recipe)]

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Copy the suite, its servers, and both curls: the one under test, and the native one."""
        self.supplies.require("perl", "openssl", "stunnel")
        source = self.supplies.unpack(self.recipe, place)
        shutil.copytree(source / "tests", tree / "tests")
        shutil.copytree(self._helpers.folder, tree, dirs_exist_ok=True)
        put_program(self.supplies, self.recipe, "native", tree / "src/native-curl")
        if side == "native":
            shutil.copy2(tree / "src/native-curl", tree / "src/curl")
        else:
            shutil.copy2(_CLIENT, tree / "src/curl")
            (tree / "src/curl").chmod(0o755)

    def tests(self) -> Sequence[str]:
        """Groups of tests by number: `0-99`, `100-199`, ..."""
        return [f"{first}-{first + _GROUP - 1}" for first in sorted(self._groups)]

    @cached_property
    def _groups(self) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for path in (self.tree("sandbox") / "tests/data").glob("test*"):
            if path.name[4:].isdecimal() and is_chosen(path.read_text("latin-1")):
                number = int(path.name[4:])
                groups.setdefault(number // _GROUP * _GROUP, []).append(number)
        return {first: sorted(numbers) for first, numbers in groups.items()}

    @contextmanager
    def _area(self, side: Side) -> Iterator[Area]:
        with self._lock:
            if side not in self._templates:
                self._templates[side] = NativeTemplate(self.tree(side), self.supplies.locales)
            if side == "sandbox" and self._image is None:
                self._image = image_with(self.tree(side))
        with self._templates[side].area() as area:
            if side == "native":
                yield area
            else:
                assert self._image is not None
                with curl_in_sandboxes(self._image, Path(area.tree)):
                    yield area

    def run_in(self, area: Area, test: str, side: Side) -> Outcome:
        """See `ProgramSuite.run_in`."""
        numbers = self._groups[int(test.partition("-")[0])]
        suite = "perl ./runtests.pl -a -am -n -c ../src/curl -vc ../src/native-curl"
        script = f'exec {suite} {" ".join(map(str, numbers))} > "$0" 2>&1 < /dev/null'
        cwd = f"{area.tree}/tests"
        ended = area.run(
            ["sh", "-c", script, f"{area.results}/{_OUTPUT}"],
            cwd=cwd,
            env={**ordinary_environment(area, cwd=cwd), "PATH": _PATH, "LC_ALL": "C.UTF-8"},
            timeout=_TIMEOUT_SECONDS,
        )
        output = area.kept().get(_OUTPUT, b"").decode("utf-8", "replace")
        return judge(output, numbers, ended.seconds)


def is_chosen(test: str) -> bool:
    """Whether the command is tested, with HTTP and servers that can be had."""
    if "<tool>" in test:
        return False
    servers = {line.split()[0] for line in _part(test, "server") if line.strip()}
    return servers <= _SERVERS and not _KEYWORDS.isdisjoint(_part(test, "keywords"))


def _part(test: str, name: str) -> list[str]:
    found = re.search(f"<{name}>\n(.*?)</{name}>", test, re.DOTALL)
    return [] if found is None else found[1].splitlines()


def judge(output: str, numbers: Sequence[int], seconds: float) -> Outcome:
    """The outcome from what the suite printed. It names the tests that passed and, at its end,
    those that failed; all others were skipped."""
    passed = set(_PASSED.findall(output))
    listed = _FAILED.search(output)
    failed = set() if listed is None else set(listed[1].split())
    complete = _DONE.search(output) is not None

    def verdict(number: str) -> Verdict:
        if number in failed or (number not in passed and not complete):
            return Verdict.FAIL
        return Verdict.PASS if number in passed else Verdict.SKIP

    cases = {str(number): verdict(str(number)) for number in numbers}
    if Verdict.FAIL in cases.values():
        detail = "\n".join([*_MESSAGE.findall(output), output[-_TAIL:]])
        return Outcome(Verdict.FAIL, detail, seconds, cases=cases)
    any_ran = Verdict.PASS in cases.values()
    return Outcome(Verdict.PASS if any_ran else Verdict.SKIP, "", seconds, cases=cases)
