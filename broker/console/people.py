"""Who looks at the console. Where the broker has users with passwords, everybody signs in as one of them.

A password is checked by the code that checks clients: PLAIN's users of a listener, or SCRAM's in the registry. Who has
signed in gets a session, in a cookie. From then on every view and every change asks the authorizer what that user may
do. Where the broker has no such users, everybody may do everything that the console can; the door decides who comes in.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.broker.console.errors import Unauthorized
from barnabas.broker.security.authorizer import EVERYTHING, Access
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.mechanism import AuthenticationFailed, Exchange
from barnabas.protocol.acls import AclOperation, ResourceType
from barnabas.protocol.scram import MECHANISMS as SCRAM
from barnabas.protocol.scram import ScramClient, ScramError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.local_cluster import LocalCluster
    from barnabas.broker.server.listener import Listener

COOKIE: Final = "barnabas_console_user"
SECONDS: Final = 8 * 3600  # that a session lasts
_PLAIN: Final = "PLAIN"
_MOST_SESSIONS: Final = 1000
_LONGEST: Final = 1000  # characters of a name or a password


class Visitor(NamedTuple):
    user: str | None
    access: Access
    session: str | None = None  # in which it has signed in


class _Nothing(Access):
    """What somebody may do who has not signed in."""

    __slots__ = ()

    def may(self, operation: AclOperation, resource_type: ResourceType, name: str) -> bool:
        return False

    def some(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        return False


EVERYBODY: Final = Visitor(None, EVERYTHING)
NOBODY: Final = Visitor(None, _Nothing())
# Who sent the request that is being handled.
visitor: ContextVar[Visitor] = ContextVar("visitor", default=NOBODY)


class _Session(NamedTuple):
    principal: Principal
    ends_at: float  # on the loop's clock


class People:
    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._sessions: dict[str, _Session] = {}
        self._one_at_a_time = asyncio.Lock()  # whoever guesses passwords waits

    @property
    def sign_in(self) -> bool:
        """Whether users have to sign in."""
        return any(True for _ in self._listeners())

    def _listeners(self) -> list[tuple[Broker, Listener]]:
        """Where clients come in with a password. Brokers may have a listener, and users, of their own."""
        found = []
        for broker in self._cluster.brokers:
            own = broker.config.inter_broker_listener_name
            for listener in broker.server.listeners:
                sasl = listener.sasl
                is_for_clients = own is None or listener.name != broker.config.inter_broker_listener.name
                if is_for_clients and sasl is not None and any(each in (_PLAIN, *SCRAM) for each in sasl.mechanisms):
                    found.append((broker, listener))
        return found

    # --- signing in ---

    async def enter(self, user: str, password: str) -> str:
        """A new session. Unauthorized if this is not the user's password."""
        principal = await self.check(user, password)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        token = secrets.token_urlsafe(32)
        self._sessions[token] = _Session(principal, asyncio.get_running_loop().time() + SECONDS)
        return token

    def leave(self, token: str | None) -> None:
        self._sessions.pop(token or "", None)

    async def check(self, user: str, password: str) -> Principal:
        if not 0 < len(user) <= _LONGEST or not 0 < len(password) <= _LONGEST:
            raise Unauthorized("a name and a password are needed")
        async with self._one_at_a_time:
            delay = 0.0
            for broker, listener in self._listeners():
                assert listener.sasl is not None
                for mechanism, exchange in listener.sasl.mechanisms.items():
                    if mechanism in (_PLAIN, *SCRAM):
                        try:
                            return await _authenticated(mechanism, exchange(), user, password)
                        except (AuthenticationFailed, ScramError):
                            broker.server.failed_authentications[listener.name, mechanism] += 1
                            delay = listener.sasl.failure_delay()
            await asyncio.sleep(delay)
            raise Unauthorized("this is not the name and the password of a user")

    # --- who asks ---

    def by_session(self, token: str | None, host: str) -> Visitor | None:
        session = self._sessions.get(token or "")
        if session is None:
            return None
        if session.ends_at < asyncio.get_running_loop().time():
            self.leave(token)
            return None
        return self._visitor(session.principal, host, token)

    async def by_password(self, headers: Mapping[str, str], host: str) -> Visitor | None:
        """Somebody who sends a name and a password with each request, as Prometheus does (HTTP Basic)."""
        scheme, _, told = headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            user, _, password = base64.b64decode(told, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return None
        return self._visitor(await self.check(user, password), host)

    def is_still_there(self, visitor: Visitor) -> bool:
        return visitor.session is None or visitor.session in self._sessions

    def _visitor(self, principal: Principal, host: str, token: str | None = None) -> Visitor:
        broker = next(iter(self._cluster.brokers), None)
        authorizer = None if broker is None else broker.authorizer
        access = EVERYTHING if authorizer is None else authorizer.access(principal, host)
        return Visitor(principal.name, access, token)


async def _authenticated(mechanism: str, exchange: Exchange, user: str, password: str) -> Principal:
    """Both sides of an exchange. Salting a password takes some milliseconds, which are spent in a thread."""
    if mechanism == _PLAIN:
        step = exchange.step(f"\0{user}\0{password}".encode())
    else:
        client = ScramClient(mechanism, user, password, os.urandom(18))
        challenge = exchange.step(client.first()).answer
        step = exchange.step(await asyncio.to_thread(client.final, challenge))
    if step.principal is None:
        raise AuthenticationFailed("the exchange has no end")
    return step.principal
