"""Describes how two outcomes differ."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from tests.differential.outcome import Outcome


def differences(native: Outcome, sandboxed: Outcome, ignore: Collection[str] = ()) -> list[str]:
    """One text per difference; none if the outcomes are equal."""
    found = []
    if native.exit_code != sandboxed.exit_code:
        found.append(f"exit code: natively {native.exit_code}, here {sandboxed.exit_code}")
    if "stdout" not in ignore:
        found += _content("stdout", native.stdout, sandboxed.stdout)
    if "stderr" not in ignore:
        found += _content("stderr", native.stderr, sandboxed.stderr)
    if "files" not in ignore:
        for name in sorted(native.files.keys() | sandboxed.files.keys()):
            there, here = native.files.get(name), sandboxed.files.get(name)
            if there is None or here is None:
                found.append(f"file {name}: only {'here' if there is None else 'natively'}")
                continue
            for aspect in ("kind", "mode", "links"):
                if getattr(there, aspect) != getattr(here, aspect):
                    found.append(
                        f"file {name}: {aspect}: natively {getattr(there, aspect)}, "
                        f"here {getattr(here, aspect)}"
                    )
            found += _content(f"file {name}", there.content, here.content)
    return found


def _content(name: str, native: bytes, sandboxed: bytes) -> list[str]:
    """A unified diff, with bytes that are not text written as escapes."""
    if native == sandboxed:
        return []
    there, here = (
        data.decode("utf-8", "backslashreplace").splitlines(keepends=True)
        for data in (native, sandboxed)
    )
    lines = difflib.unified_diff(there, here, f"{name} natively", f"{name} here", n=1)
    return ["".join(line if line.endswith("\n") else line + "\n" for line in lines)]
