"""The TLS of a listener: contexts for those who connect to it, and for this broker where it connects to others.

Files are checked again when a client connects: a certificate that was replaced on disk is used for the next client. If
the new files cannot be used, the previous ones stay in use, and the log says why.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from typing import TYPE_CHECKING, Final

import structlog

from barnabas.broker.security.ciphers import allow_only
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.principal import ANONYMOUS, Principal, PrincipalMapper, distinguished_name
from barnabas.broker.security.stores import KeyPair, key_pair, trusted

if TYPE_CHECKING:
    from barnabas.broker.config.definitions.security import SecuritySettings

log = structlog.get_logger()

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

Seen = tuple[tuple[int, int, int] | None, ...]


class Tls:
    """What a listener's `ssl.…` settings say."""

    def __init__(self, settings: SecuritySettings, listener: str) -> None:
        """SecurityError if they, or the files that they name, cannot be used."""
        self._prefix = f"listener {listener}: "
        self._adopt(settings)

    def reconfigure(self, settings: SecuritySettings) -> None:
        """Use other settings for clients that connect from now on; keep the previous ones if they cannot be used."""
        try:
            self._adopt(settings)
        except SecurityError as error:
            log.error("altered TLS settings cannot be used; the previous ones stay in force", reason=str(error))

    def _adopt(self, settings: SecuritySettings) -> None:
        _require_cryptography(self._prefix)
        seen = _look_at(settings)
        server = self._server_context(settings)
        self._mapper = PrincipalMapper(settings.ssl_principal_mapping_rules)
        self._settings, self._seen, self._server = settings, seen, server
        self._client: ssl.SSLContext | None = None  # created when it is needed

    @property
    def server_context(self) -> ssl.SSLContext:
        """For a client that connects here."""
        self._follow_files()
        return self._server

    @property
    def client_context(self) -> ssl.SSLContext:
        """For a connection of this broker to another one's listener of this name."""
        self._follow_files()
        if self._client is None:
            self._client = self._client_context(self._settings)
        return self._client

    def _follow_files(self) -> None:
        seen = _look_at(self._settings)
        if seen != self._seen:
            self.reconfigure(self._settings)
            self._seen = seen  # files that cannot be used are not tried again until they change

    def principal_of(self, connection: ssl.SSLObject) -> Principal:
        """Who a client is, according to its certificate. SecurityError if no rule matches it."""
        certificate = connection.getpeercert(binary_form=True)
        if certificate is None:
            return ANONYMOUS
        try:
            name = distinguished_name(certificate)
        except ValueError:  # OpenSSL is not as particular
            raise SecurityError("the name in its certificate cannot be read") from None
        principal = self._mapper(name)
        if principal is None:
            raise SecurityError(f"no rule of ssl.principal.mapping.rules matches {name}")
        return principal

    @classmethod
    def of_client(cls, settings: SecuritySettings) -> ssl.SSLContext:
        """For a client that has no listener."""
        tls = cls.__new__(cls)
        tls._prefix = ""
        _require_cryptography("")
        return tls._client_context(settings)

    # --- contexts ---

    def _server_context(self, settings: SecuritySettings) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A resumed session would not check the certificates again.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
        context.num_tickets = 0
        pair = self._common(context, settings)
        if pair is None:
            raise SecurityError(
                f"{self._prefix}TLS needs a key and a certificate: set ssl.keystore.location, or ssl.keystore.key and "
                "ssl.keystore.certificate.chain"
            )
        context.verify_mode = _CLIENT_AUTH[settings.ssl_client_auth]
        return context

    def _client_context(self, settings: SecuritySettings) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = settings.ssl_endpoint_identification_algorithm.lower() == "https"
        context.verify_mode = ssl.CERT_REQUIRED
        self._common(context, settings)
        return context

    def _common(self, context: ssl.SSLContext, settings: SecuritySettings) -> KeyPair | None:
        unknown = [name for name in settings.ssl_enabled_protocols if name not in _VERSIONS]
        if unknown or not settings.ssl_enabled_protocols:
            raise SecurityError(
                f"{self._prefix}ssl.enabled.protocols has {', '.join(unknown) or 'nothing'}, but the versions of TLS "
                f"that Barnabas speaks are {' and '.join(_VERSIONS)}"
            )
        versions = [_VERSIONS[name] for name in settings.ssl_enabled_protocols]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        if settings.ssl_cipher_suites:
            allow_only(context, settings.ssl_cipher_suites, f"{self._prefix}ssl.cipher.suites")
        authorities = trusted(settings, self._prefix)
        if authorities is None:
            context.load_default_certs(
                ssl.Purpose.CLIENT_AUTH if context.protocol is ssl.PROTOCOL_TLS_SERVER else ssl.Purpose.SERVER_AUTH
            )
        else:
            try:
                context.load_verify_locations(cadata=authorities.decode("ascii"))
            except ssl.SSLError as error:
                reason = error.reason or str(error)
                raise SecurityError(f"{self._prefix}the trusted certificates cannot be used: {reason}") from None
            # A store may have a certificate that is trusted by itself, without its authority, as in Java.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        pair = key_pair(settings, self._prefix)
        if pair is not None:
            try:
                _load(context, pair)
            except ssl.SSLError as error:
                raise SecurityError(
                    f"{self._prefix}the private key and the certificate cannot be used: {error.reason or error}"
                ) from None
        return pair


def _require_cryptography(prefix: str) -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise SecurityError(
            f"{prefix}TLS needs a package that is not installed: pip install '.[security]' in a clone of Barnabas"
        ) from None


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    """Python reads keys from files only. This one exists in memory where the system can do that."""
    if hasattr(os, "memfd_create") and os.path.isdir("/proc/self/fd"):
        descriptor = os.memfd_create("barnabas-key", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair.key + pair.certificates)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}")
        return
    descriptor, path = tempfile.mkstemp(prefix="barnabas-key-")  # readable for its owner only
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair.key + pair.certificates)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)


def _look_at(settings: SecuritySettings) -> Seen:
    """What tells a file from the one that replaces it."""
    return tuple(_state(path) for path in (settings.ssl_keystore_location, settings.ssl_truststore_location))


def _state(path: str | None) -> tuple[int, int, int] | None:
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
