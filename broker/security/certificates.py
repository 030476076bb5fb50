"""An authority for development: it creates the certificates of brokers and clients on one machine, or in a test.

Keys are elliptic (P-256), because a handshake then takes a fraction of a millisecond.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_A_DAY: Final = datetime.timedelta(days=1)
_ORGANIZATION: Final = "Barnabas development"


class Issued(NamedTuple):
    """A private key and its certificate, as PEM."""

    key: bytes
    certificate: bytes

    def __repr__(self) -> str:
        return "Issued(…)"


class Authority:
    def __init__(self, issued: Issued) -> None:
        self.issued = issued
        self._key: Any = load_pem_private_key(issued.key, None)
        self._certificate = x509.load_pem_x509_certificate(issued.certificate)

    @classmethod
    def create(cls, *, days: int = 3650, name: str = "Barnabas development CA") -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key(), 0, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage(is_authority=True), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        return cls(Issued(_key_pem(key), builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)))

    @property
    def certificate(self) -> bytes:
        """What others have to trust, as PEM."""
        return self.issued.certificate

    def issue(
        self, common_name: str, hosts: Sequence[str] = (), *, days: int = 825, since_days: int = 0, **more: str
    ) -> Issued:
        """A key and a certificate. With `hosts` it is for a server as well as for a client, otherwise only for a
        client.

        `more` are other attributes of the subject, by their names in RFC 2253: `OU="…"`.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name, **more)
        builder = _builder(subject, self._certificate.subject, key.public_key(), since_days, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage(is_authority=False), critical=True)
        purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        return Issued(_key_pem(key), builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, since_days: int, days: int
) -> x509.CertificateBuilder:
    # A little in the past, because clocks differ.
    start = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=since_days, minutes=5)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + days * _A_DAY)
    )


def _name(common_name: str, **more: str) -> x509.Name:
    words = {"O": _ORGANIZATION, **more, "CN": common_name}
    numbers = {"O": NameOID.ORGANIZATION_NAME, "OU": NameOID.ORGANIZATIONAL_UNIT_NAME, "CN": NameOID.COMMON_NAME}
    return x509.Name([x509.NameAttribute(numbers[word], value) for word, value in words.items()])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
