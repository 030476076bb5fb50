"""The SASL of a listener: which mechanisms it has, and the credentials for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.sasl.jaas import parse_jaas
from barnabas.broker.security.sasl.jwks import FileKeys, UrlKeys, keys_at
from barnabas.broker.security.sasl.mechanism import Exchange
from barnabas.broker.security.sasl.oauthbearer import OAuthBearer, Validator
from barnabas.broker.security.sasl.plain import Plain
from barnabas.broker.security.sasl.scram import CredentialOf, Scram, TokenOf
from barnabas.protocol.scram import MECHANISMS as SCRAM

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig
    from barnabas.broker.config.definitions.security import SecuritySettings
    from barnabas.broker.server.server import Server

PLAIN: Final = "PLAIN"
OAUTHBEARER: Final = "OAUTHBEARER"
SERVED: Final = (PLAIN, *SCRAM, OAUTHBEARER)
_VALIDATING: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED: Final = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


class Sasl:
    """What `sasl.…` says for one listener."""

    def __init__(self, server: Server, listener: str) -> None:
        """SecurityError if it cannot be done."""
        self._server = server
        self._config: BrokerConfig = server.config
        self._listener = listener
        self._keys: dict[str, FileKeys | UrlKeys] = {}  # by their URL
        self._credential_of: CredentialOf = lambda user, mechanism: server.scram_credential(user, mechanism)
        self._token_of: TokenOf = lambda token_id, mechanism: server.token_login(token_id, mechanism)
        self.mechanisms: dict[str, Callable[[], Exchange]] = {}
        self.reconfigure()

    def reconfigure(self) -> None:
        settings = self._config.for_listener(self._listener)
        unserved = [name for name in settings.sasl_enabled_mechanisms if name not in SERVED]
        if unserved or not settings.sasl_enabled_mechanisms:
            raise SecurityError(
                f"listener {self._listener}: sasl.enabled.mechanisms has {', '.join(unserved) or 'nothing'}, but "
                f"Barnabas supports only {', '.join(SERVED)}"
            )
        self.mechanisms = {name: self._mechanism(name) for name in settings.sasl_enabled_mechanisms}

    def _mechanism(self, name: str) -> Callable[[], Exchange]:
        if name in SCRAM:
            return partial(Scram, name, self._credential_of, self._token_of)
        settings = self._config.for_listener(self._listener, name)
        prefix = f"listener.name.{self._listener.lower()}.{name.lower()}."
        if name == OAUTHBEARER:
            return partial(OAuthBearer, self._validator(settings, prefix))
        if settings.sasl_server_callback_handler_class is not None:
            raise SecurityError(
                f"{prefix}sasl.server.callback.handler.class is not supported: Barnabas cannot run callback handlers "
                "written in Java. Remove the setting, and use the users of sasl.jaas.config or SCRAM"
            )
        setting = f"{prefix}sasl.jaas.config"
        if settings.sasl_jaas_config is None:
            raise SecurityError(f"listener {self._listener}: {name} needs users; set {setting}")
        return partial(Plain, parse_jaas(settings.sasl_jaas_config, setting).users)

    def _validator(self, settings: SecuritySettings, prefix: str) -> Validator:
        """What checks tokens. Unsigned ones must be enabled explicitly: Kafka accepts them by default."""
        handler = settings.sasl_server_callback_handler_class
        if handler != _UNSECURED and handler not in _VALIDATING:
            raise SecurityError(
                f"{prefix}sasl.server.callback.handler.class must be {_VALIDATING[0]} for signed tokens, or "
                f"{_UNSECURED} for unsigned ones, which are for development only"
            )
        try:
            import jwt  # noqa: F401
        except ImportError:
            raise SecurityError(
                f"listener {self._listener}: OAUTHBEARER needs a package that is not installed: "
                "pip install '.[security]' in a clone of Barnabas"
            ) from None
        clock = self._server.clock
        keys = None
        if handler != _UNSECURED:
            url = settings.sasl_oauthbearer_jwks_endpoint_url
            if url is None:
                raise SecurityError(f"listener {self._listener}: OAUTHBEARER needs sasl.oauthbearer.jwks.endpoint.url")
            keys = self._keys.get(url)
            if keys is None:
                refresh_ms = settings.sasl_oauthbearer_jwks_endpoint_refresh_ms
                name = "sasl.oauthbearer.jwks.endpoint.url"
                keys = self._keys[url] = keys_at(url, name, refresh_ms, clock.now_ms, self._server.loop)
        return Validator(
            keys,
            clock.now_ms,
            audience=settings.sasl_oauthbearer_expected_audience,
            issuer=settings.sasl_oauthbearer_expected_issuer,
            skew_seconds=settings.sasl_oauthbearer_clock_skew_seconds,
            subject_claim=settings.sasl_oauthbearer_sub_claim_name,
            scope_claim=settings.sasl_oauthbearer_scope_claim_name,
        )

    def largest_frame(self) -> int:
        settings = self._config
        return settings.sasl_server_max_receive_size

    def failure_delay(self) -> float:
        """How many seconds a client waits before it is told that it failed."""
        return self._config.connection_failed_authentication_delay_ms / 1000

    def session_ms(self, mechanism: str) -> int:
        """How long a client stays authenticated; 0 for as long as it is connected."""
        settings = self._config.for_listener(self._listener, mechanism)
        return settings.connections_max_reauth_ms
