"""Makes programs in the sandbox trust the sandbox's authority.

Owns `trust` and `GUEST_VARIABLES`. Rules: the certificate is appended to each bundle of the image,
between two lines by which a later call finds and replaces it. Only files that belong to root are
changed: a guest cannot lead the host to another file. Programs that bring a bundle of their own
(Python's `certifi` from an index) are told by variables to use the system's.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from wasmsand.kernel.errno import Errno, KernelError
from wasmsand.kernel.flags import S_IFMT, S_IFREG
from wasmsand.kernel.kernel import Kernel
from wasmsand.kernel.limits import IO_CHUNK
from wasmsand.kernel.vfs import ROOT
from wasmsand.machine.lock import SandboxLock
from wasmsand.machine.trees import content_of

SYSTEM_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
"""OpenSSL (so Python's `ssl`), curl, wget and git read it."""
BUNDLES: Final = (
    SYSTEM_BUNDLE,
    "/usr/lib/python/certifi/certifi/cacert.pem",
    "/usr/lib/python/pip/pip/_vendor/certifi/cacert.pem",
)
GUEST_VARIABLES: Final = MappingProxyType(
    {
        "SSL_CERT_FILE": SYSTEM_BUNDLE,
        "REQUESTS_CA_BUNDLE": SYSTEM_BUNDLE,
        "CURL_CA_BUNDLE": SYSTEM_BUNDLE,
        "PIP_CERT": SYSTEM_BUNDLE,
    }
)
"""Variables that programs in the sandbox should start with."""
_BEGIN: Final = b"\n# The authority of this sandbox begins.\n"
_END: Final = b"# The authority of this sandbox ends.\n"


def trust(kernel: Kernel, lock: SandboxLock, certificate: bytes) -> None:
    """Add a certificate in PEM to the bundles, instead of the one of an earlier call. ENOSPC if the
    file system is full."""
    for path in BUNDLES:
        with lock:
            _add(kernel, path.encode(), certificate)


def _add(kernel: Kernel, path: bytes, certificate: bytes) -> None:
    namespace = kernel.namespace
    try:
        node = namespace.resolve(ROOT, namespace.root, path)
    except KernelError as error:
        if error.errno in (Errno.ENOENT, Errno.ENOTDIR) and path != SYSTEM_BUNDLE.encode():
            return  # the image has no such package
        raise
    stat = namespace.stat(node)
    if stat.mode & S_IFMT != S_IFREG or stat.uid != 0 or stat.size > IO_CHUNK:
        raise KernelError(Errno.EACCES, f"{path.decode()} is not a bundle of the image")
    old = namespace.read(node, 0, stat.size)
    before, begin, rest = old.partition(_BEGIN)
    after = rest.partition(_END)[2] if begin else b""
    new = before + _BEGIN + certificate + _END + after
    if new != old:
        namespace.replace_content(node, content_of(new))
