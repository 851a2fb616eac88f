"""The certificate authority of a sandbox.

Owns `Authority`: its key and certificate, and certificates of hosts. Rules: keys are made when the
first certificate is needed and never leave the process; only the authority's certificate is given
to the sandbox. All hosts share one key. Contexts of hosts are kept, up to a limit. Certificates are
valid for a century, because a sandbox may have a clock of its own.
"""

from __future__ import annotations

import datetime
import ssl
import threading
from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING, Final

from wasmsand.machine.network.extra import require_extra
from wasmsand.machine.network.inspecting.contexts import guest_context

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

HOSTS_KEPT: Final = 128
"""Hosts whose TLS context is kept. A wildcard rule allows any number of hosts."""
_FROM: Final = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_UNTIL: Final = datetime.datetime(2099, 12, 31, tzinfo=datetime.UTC)


class Authority:
    """Signs certificates that only this sandbox trusts. May be used by several threads."""

    def __init__(self) -> None:
        require_extra()
        self._lock = threading.Lock()
        self._contexts: OrderedDict[str, ssl.SSLContext] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Authority with {len(self._contexts)} hosts>"

    @cached_property
    def _key(self) -> EllipticCurvePrivateKey:
        return _new_key()

    @cached_property
    def _key_of_hosts(self) -> EllipticCurvePrivateKey:
        return _new_key()

    @cached_property
    def _certificate(self) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256

        # Each authority has a name of its own: OpenSSL finds issuers by name.
        name = _name(f"wasmsand sandbox authority {x509.random_serial_number():x}"[:60])
        builder = _builder(name, name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        usage = _usage(signs_certificates=True)
        return builder.add_extension(usage, critical=True).sign(self._key, SHA256())

    @property
    def certificate(self) -> bytes:
        """The authority's certificate in PEM."""
        from cryptography.hazmat.primitives.serialization import Encoding

        with self._lock:
            return self._certificate.public_bytes(Encoding.PEM)

    def context_for(self, host: str) -> ssl.SSLContext:
        """How to answer a guest that connects to `host` (a name, or an IP address) by TLS."""
        with self._lock:
            context = self._contexts.get(host)
            if context is None:
                context = self._contexts[host] = self._new_context(host)
                if len(self._contexts) > HOSTS_KEPT:
                    self._contexts.popitem(last=False)
            self._contexts.move_to_end(host)
            return context

    def _new_context(self, host: str) -> ssl.SSLContext:
        from cryptography import x509
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
        )
        from cryptography.x509.oid import ExtendedKeyUsageOID

        address = _address(host)
        name = x509.DNSName(host) if address is None else address
        builder = _builder(_name("wasmsand"), self._certificate.subject, self._key_of_hosts)
        signed = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([name]), critical=False)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, SHA256())
        )
        key = self._key_of_hosts.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

        def accepts(asked: str | None) -> bool:
            if asked is None:  # clients do not send addresses as names
                return address is not None
            return asked.lower().removesuffix(".") == host

        return guest_context(signed.public_bytes(Encoding.PEM), key, accepts)


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _name(text: str) -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    from cryptography import x509

    public = key.public_key()
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_UNTIL)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _address(host: str) -> x509.IPAddress | None:
    import ipaddress

    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return None
