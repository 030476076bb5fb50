"""Key stores and trust stores: PEM in files and in settings, and PKCS12 files.

Java's own older format, JKS, is refused with the command that converts it. A file in PKCS12 format is read whatever its
type says, as Java does: keytool has written PKCS12 for years, and JKS is still the default of `ssl.keystore.type`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.security.errors import SecurityError

if TYPE_CHECKING:
    from barnabas.broker.config.definitions.security import SecuritySettings

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_FILE_TYPES: Final = ("JKS", "PKCS12", "PEM")


class KeyPair(NamedTuple):
    """A private key, unencrypted, and the certificates from its own to that of its authority. All of it is PEM."""

    key: bytes
    certificates: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"


def key_pair(settings: SecuritySettings, prefix: str) -> KeyPair | None:
    """What `ssl.keystore.…` says, or None if nothing is set. `prefix` comes before the names in an error message."""
    kind = _kind(prefix, "ssl.keystore.type", settings.ssl_keystore_type)
    chain = settings.ssl_keystore_certificate_chain
    if settings.ssl_keystore_key is not None or chain is not None:
        if kind != "PEM" or settings.ssl_keystore_location is not None:
            raise SecurityError(
                f"{prefix}ssl.keystore.key and ssl.keystore.certificate.chain need ssl.keystore.type=PEM, and no "
                "ssl.keystore.location"
            )
        if settings.ssl_keystore_key is None or chain is None:
            raise SecurityError(f"{prefix}ssl.keystore.key and ssl.keystore.certificate.chain belong together")
        key = _private_key(settings.ssl_keystore_key.encode(), settings.ssl_key_password, f"{prefix}ssl.keystore.key")
        return _pair(key, _certificates(chain.encode(), f"{prefix}ssl.keystore.certificate.chain"))
    path = settings.ssl_keystore_location
    if path is None:
        return None
    name = f"{prefix}ssl.keystore.location={path}"
    data = _read(path, name)
    if kind == "PEM":
        return _pair(_private_key(data, settings.ssl_key_password, name), _certificates(data, name))
    key, own, others = _pkcs12(data, settings.ssl_keystore_password, name, "ssl.keystore.password")
    if key is None or own is None:
        raise SecurityError(f"{name} has no private key with its certificate")
    return _pair(key, [own, *others])


def trusted(settings: SecuritySettings, prefix: str) -> bytes | None:
    """The certificates that `ssl.truststore.…` names, as PEM; None if nothing is set."""
    kind = _kind(prefix, "ssl.truststore.type", settings.ssl_truststore_type)
    if settings.ssl_truststore_certificates is not None:
        if kind != "PEM" or settings.ssl_truststore_location is not None:
            raise SecurityError(
                f"{prefix}ssl.truststore.certificates needs ssl.truststore.type=PEM, and no ssl.truststore.location"
            )
        name = f"{prefix}ssl.truststore.certificates"
        return _pem(_certificates(settings.ssl_truststore_certificates.encode(), name))
    path = settings.ssl_truststore_location
    if path is None:
        return None
    name = f"{prefix}ssl.truststore.location={path}"
    data = _read(path, name)
    if kind == "PEM":
        return _pem(_certificates(data, name))
    _, own, others = _pkcs12(data, settings.ssl_truststore_password, name, "ssl.truststore.password")
    found = [*([] if own is None else [own]), *others]
    if not found:
        raise SecurityError(f"{name} has no certificate")
    return _pem(found)


def _kind(prefix: str, setting: str, text: str) -> str:
    kind = text.upper()
    if kind not in _FILE_TYPES:
        raise SecurityError(f"{prefix}{setting} is {text}, but it must be one of {', '.join(_FILE_TYPES)}")
    return kind


def _read(path: str, name: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise SecurityError(f"{name} cannot be read: {error.strerror}") from None


def _pkcs12(data: bytes, password: str | None, name: str, password_setting: str) -> tuple[Any, Any, list[Any]]:
    """The key, its certificate, and the other certificates of a PKCS12 file."""
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12

    if data.startswith((_JKS, _JCEKS)):
        path = name.partition("=")[2]
        raise SecurityError(
            f"{name} is in the old JKS format; convert it: keytool -importkeystore -srckeystore {path} "
            f"-destkeystore {path}.p12 -deststoretype PKCS12"
        )
    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except ValueError:
        raise SecurityError(f"{name} is not a PKCS12 file, or {password_setting} is not its password") from None
    own = None if store.cert is None else store.cert.certificate
    return store.key, own, [each.certificate for each in store.additional_certs]


def _private_key(pem: bytes, password: str | None, name: str) -> Any:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    begin = pem.find(b"-----BEGIN ")
    while begin >= 0:
        end = pem.find(b"-----END ", begin)
        end = len(pem) if end < 0 else pem.find(b"-----", end + 9) + 5
        block = pem[begin:end]
        if b"PRIVATE KEY-----" in block[:50]:
            is_encrypted = b"ENCRYPTED" in block[:200]
            try:
                return load_pem_private_key(block, password.encode() if password and is_encrypted else None)
            except (ValueError, TypeError):
                reason = "ssl.key.password is not its password" if is_encrypted else "it is damaged"
                raise SecurityError(f"the private key of {name} cannot be read: {reason}") from None
        begin = pem.find(b"-----BEGIN ", end)
    raise SecurityError(f"{name} has no private key in PEM format")


def _certificates(pem: bytes, name: str) -> list[Any]:
    from cryptography import x509

    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise SecurityError(f"{name} has no certificate in PEM format, or a damaged one") from None


def _pair(key: Any, certificates: list[Any]) -> KeyPair:
    from cryptography.hazmat.primitives import serialization

    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return KeyPair(pem, _pem(certificates))


def _pem(certificates: list[Any]) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return b"".join(each.public_bytes(Encoding.PEM) for each in certificates)
