"""git's own tests over HTTP, with a small server in Apache's place.

Owns the list of scripts. Rules: as for `git_suite.py`; the server is the same Python program on
both sides (`git_httpd.py`), and runs where git runs, because scripts change what it serves.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from conformance.area import Area
from conformance.git_suite import GitSuite
from conformance.suite import Side
from conformance.supplies import Workplace

_SERVER = Path(__file__).with_name("git_httpd.py")
SCRIPTS = {
    "dumb servers": "5550",
    "smart servers": "5551 5561",
    "push": "5541 5545 5548 5549",
    "shallow": "5539 5542",
    "bundles, get": "5557 5558",
    "passwords": "5563",
    "messages": "5581",
    "allowed protocols": "5812",
}
"""Scripts that need a web server, without those that need WebDAV, a proxy, TLS, HTTP/2 or
git's daemon."""


class GitHttpSuite(GitSuite):
    """The scripts of the same suite that need a web server."""

    code: Sequence[str] = (*GitSuite.code, "git_http_suite.py", _SERVER.name)

    name = "git-http"
    recipe_name = "git"
    program = "git over HTTP,"

    def make_tree(self, side: Side, tree: Path, place: Workplace) -> None:
        """Also put the server there."""
        super().make_tree(side, tree, place)
        shutil.copy2(_SERVER, tree)
        (tree / _SERVER.name).chmod(0o755)

    def tests(self) -> Sequence[str]:
        """The chosen scripts, in the suite's order."""
        return self.scripts(SCRIPTS)

    def variables(self, area: Area) -> Mapping[str, str]:
        """Where the server is; it needs no modules, but the suite looks for some."""
        return {
            "GIT_TEST_HTTPD": "true",
            "LIB_HTTPD_PATH": f"{area.tree}/{_SERVER.name}",
            "LIB_HTTPD_MODULE_PATH": f"{area.tree}/t",
        }
