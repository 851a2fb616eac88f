"""What WASI programs cannot do, or cannot do yet: see docs/limitations.md."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from wasmsand import Sandbox

Install = Callable[..., None]


ABSOLUTE_LINK = "L021: an absolute link leads out of the working directory"
LIKE_A_ROOT = "L022: wasi-libc does not tell etc/x from /etc/x"


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        pytest.param(
            "ln -s /etc/hostname link; libc link | head -n 1",
            "link: sandbox\n",
            id="an absolute link",
            marks=pytest.mark.xfail(reason=ABSOLUTE_LINK),
        ),
        pytest.param(
            "mkdir etc; echo mine > etc/x; libc etc/x | head -n 1",
            "etc/x: mine\n",
            id="a directory named like one of the root",
            marks=pytest.mark.xfail(reason=LIKE_A_ROOT),
        ),
    ],
)
def test_a_relative_path_is_resolved(
    sandbox: Sandbox, install: Install, script: str, printed: str
) -> None:
    install("libc")
    assert sandbox.commands.run(script).stdout == printed
