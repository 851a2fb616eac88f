"""Settings of TLS.

Owns the contexts towards real hosts and towards the guest. Rules: at least TLS 1.2; HTTP/1.1 only;
a real host's certificate and name are always checked; the guest has to name the host that it
connected to (SNI).
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Final

HTTP_1_1: Final = "http/1.1"
_AUTHORITY_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""OpenSSL's variables of the host."""
_DEVICES: Final = Path("/dev/fd")


def verifying_context(ca_file: str | None = None) -> ssl.SSLContext:
    """How the bridge connects to real hosts. `ca_file` replaces the host's own authorities.
    Contexts are shared, because loading the authorities takes some milliseconds."""
    return _verifying_context(ca_file, *map(os.environ.get, _AUTHORITY_VARIABLES))


@lru_cache(maxsize=8)
def _verifying_context(ca_file: str | None, *_variables: str | None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols([HTTP_1_1])
    return context


def guest_context(
    certificate_chain: bytes, key: bytes, accepts_name: Callable[[str | None], bool]
) -> ssl.SSLContext:
    """How the bridge answers the guest, with a certificate and its key in PEM."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.num_tickets = 1
    context.set_alpn_protocols([HTTP_1_1])

    def check_name(_tls: object, name: str | None, _context: object) -> int | None:
        return None if accepts_name(name) else ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME

    context.sni_callback = check_name
    _load(context, certificate_chain, key)
    return context


def _load(context: ssl.SSLContext, certificate_chain: bytes, key: bytes) -> None:
    """`ssl` loads certificates only from files. A pipe is one that needs no directory, which a
    confined process may not have, and leaves nothing behind."""
    with ExitStack() as open_files:
        place = _from_pipe if _DEVICES.exists() else _from_directory
        context.load_cert_chain(place(certificate_chain, open_files), place(key, open_files))


def _from_pipe(content: bytes, open_files: ExitStack) -> str:
    reading, writing = os.pipe()
    open_files.callback(os.close, reading)
    with open(writing, "wb") as pipe:
        pipe.write(content)  # a few hundred bytes: less than any pipe holds
    return str(_DEVICES / str(reading))


def _from_directory(content: bytes, open_files: ExitStack) -> str:
    directory = open_files.enter_context(tempfile.TemporaryDirectory())
    path = Path(directory) / "pem"
    path.touch(mode=0o600)
    path.write_bytes(content)
    return str(path)
