"""Print the authorities of Mozilla's certdata.txt that may vouch for servers, as PEM.

The file is a list of objects, each a list of attributes `NAME TYPE VALUE`; a value of the type
MULTILINE_OCTAL follows on lines of its own up to END. A certificate and the statement about how
far it is trusted are two objects, which have issuer and serial number in common.
"""

from __future__ import annotations

import base64
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

_TRUSTED = "CKT_NSS_TRUSTED_DELEGATOR"


def objects(lines: Iterator[str]) -> Iterator[dict[str, str | bytes]]:
    """The objects of the file; texts, and bytes for those in octal numbers."""
    found: dict[str, str | bytes] = {}
    for line in lines:
        name, _, rest = line.strip().partition(" ")
        kind, _, value = rest.partition(" ")
        if not name.startswith("CKA_"):
            continue
        if name == "CKA_CLASS" and found:
            yield found
            found = {}
        if kind == "MULTILINE_OCTAL":
            digits = "".join(iter(lambda: next(lines).strip(), "END"))
            found[name] = bytes(int(octal, 8) for octal in re.findall(r"\\([0-7]{3})", digits))
        else:
            found[name] = value.strip()
    yield found


def main() -> None:
    """Print the bundle; certificates in the order of the file."""
    lines = iter(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    everything = list(objects(lines))
    trusted = {
        (entry["CKA_ISSUER"], entry["CKA_SERIAL_NUMBER"])
        for entry in everything
        if entry["CKA_CLASS"] == "CKO_NSS_TRUST" and entry["CKA_TRUST_SERVER_AUTH"] == _TRUSTED
    }
    for entry in everything:
        content = entry.get("CKA_VALUE")
        if entry["CKA_CLASS"] != "CKO_CERTIFICATE" or not isinstance(content, bytes):
            continue
        if (entry["CKA_ISSUER"], entry["CKA_SERIAL_NUMBER"]) in trusted:
            text = textwrap.fill(base64.b64encode(content).decode(), 64)
            print(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----")


main()
