"""A certificate authority of the tests' own, for servers on loopback.

It is independent of `wasmsand`'s: its certificates may be expired or for other hosts.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


class PrivateAuthority:
    """Issues certificates for servers; `ca_file` is what verifies them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("tests' private authority")
        builder = self._builder(self._name, self._key, NOW + DAY)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_signing(), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.ca_file = str(directory / "ca.pem")
        Path(self.ca_file).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        issuer_key = self._key.public_key()
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 10 * DAY)
            .not_valid_after(until)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), False)
        )

    def context(self, *hosts: str, expired: bool = False) -> ssl.SSLContext:
        """The settings of a server for `hosts`."""
        key = ec.generate_private_key(ec.SECP256R1())
        until = NOW - DAY if expired else NOW + DAY
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        certificate = (
            self._builder(_name("a server of the tests"), key, until)
            .add_extension(names, critical=False)
            .sign(self._key, hashes.SHA256())
        )
        path = self.directory / f"{hosts[0].replace(':', '_')}-{expired}.pem"
        path.write_bytes(
            certificate.public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(path)
        context.set_alpn_protocols(["h2", "http/1.1"])
        return context


def _signing() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
