"""Delegation tokens in the registry: any broker may create and change them, and every broker knows them."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import structlog

from barnabas.broker.announcements import Announcements
from barnabas.broker.clock import Clock, Every
from barnabas.broker.controller.uuids import random_uuid, uuid_to_string
from barnabas.broker.controller.znodes import MalformedNode
from barnabas.broker.registry.errors import Conflict, RegistryError
from barnabas.broker.registry.registry import Change, Node, Registry
from barnabas.broker.registry.skeleton import make_parents
from barnabas.broker.registry.tree_operations import Create, Delete, Operation, Set
from barnabas.broker.security import token_nodes
from barnabas.broker.security.principal import Principal
from barnabas.broker.security.sasl.scram import TokenLogin
from barnabas.broker.security.tokens import Lifetimes, Token, TokenRefused, ended, hmac_of, issued, renewed
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.scram import FEWEST_ITERATIONS, ScramCredential

if TYPE_CHECKING:
    from barnabas.broker.config import BrokerConfig

log = structlog.get_logger()

_SALT_SIZE: Final = 24


class Known(NamedTuple):
    token: Token
    hmac: bytes


class TokenFollower:
    def __init__(
        self,
        config: BrokerConfig,
        secret: str,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        is_controller: Callable[[], bool],
    ) -> None:
        """`spawn` runs work in the background; the controller removes what has expired."""
        self._config = config
        self._secret = secret
        self._clock = clock
        self._spawn = spawn
        self._is_controller = is_controller
        self._registry: Registry | None = None
        self._unwatch: Callable[[], None] | None = None
        self._known: dict[str, Known] = {}  # by their ids
        self._ids: dict[bytes, str] = {}  # by their HMACs
        self._credentials: dict[tuple[str, str], ScramCredential] = {}  # by id and mechanism, of those who logged in
        self._announcements = Announcements(token_nodes.CHANGES, clock, spawn)
        self._expiring = Every(clock, lambda: config.delegation_token_expiry_check_interval_ms, self._look_for_expired)

    @property
    def known(self) -> Iterable[Known]:
        """This includes those that have expired and are not yet removed."""
        return self._known.values()

    # --- following ---

    async def follow(self, registry: Registry) -> None:
        """Read the tokens, and follow them in a new session."""
        self.stop()
        self._registry = registry
        await registry.mirror(token_nodes.ROOT)
        await make_parents(registry, token_nodes.SKELETON)
        names = registry.children(token_nodes.TOKENS)
        gone = self._known.keys() - set(names)
        self._put([(token_nodes.path_of(name), None) for name in sorted(gone)])
        self._put([(path, registry.find(path)) for path in map(token_nodes.path_of, names)])
        self._unwatch = registry.watch(token_nodes.TOKENS, self._put)
        self._announcements.follow(registry)
        self._expiring.start()

    def stop(self) -> None:
        if self._unwatch is not None:
            self._unwatch()
            self._unwatch = None
        self._announcements.stop()
        self._expiring.cancel()

    def _put(self, changes: Sequence[Change | tuple[str, Node | None]]) -> None:
        for path, node in changes:
            token_id = token_nodes.id_at(path)
            if token_id is None:
                continue
            if node is None:
                self._forget(token_id)
                continue
            try:
                token = token_nodes.read(path, node)
            except MalformedNode as error:
                log.error("a delegation token cannot be read and is left out", reason=str(error))
                self._forget(token_id)
                continue
            known = self._known.get(token_id)
            hmac = hmac_of(token_id, self._secret) if known is None else known.hmac
            self._known[token_id] = Known(token._replace(token_id=token_id), hmac)
            self._ids[hmac] = token_id

    def _forget(self, token_id: str) -> None:
        known = self._known.pop(token_id, None)
        if known is not None:
            del self._ids[known.hmac]
        for key in [key for key in self._credentials if key[0] == token_id]:
            del self._credentials[key]

    # --- logging in ---

    def login(self, token_id: str, mechanism: str) -> TokenLogin | None:
        """What SCRAM has to know about a token. Unlike in Kafka, a token is not valid between its expiry and its
        removal."""
        known = self._known.get(token_id)
        if known is None or known.token.is_expired(self._clock.now_ms()):
            return None
        credential = self._credentials.get((token_id, mechanism))
        if credential is None:
            password = base64.b64encode(known.hmac).decode()
            credential = ScramCredential.of_password(mechanism, password, os.urandom(_SALT_SIZE), FEWEST_ITERATIONS)
            self._credentials[token_id, mechanism] = credential
        return TokenLogin(credential, known.token.owner.name, known.token.expires_at_ms)

    # --- changing ---

    async def create(
        self, owner: Principal, requester: Principal, renewers: Iterable[Principal], wanted_ms: int
    ) -> Known:
        token_id = uuid_to_string(random_uuid(os.urandom))
        now_ms = self._clock.now_ms()
        token = issued(token_id, owner, requester, tuple(renewers), wanted_ms, self._lifetimes(), now_ms)
        await self._session().multi(
            [
                Create(token_nodes.path_of(token_id), token_nodes.write(token)),
                token_nodes.announcement(token_id),
            ]
        )
        return Known(token, hmac_of(token_id, self._secret))

    async def renew(self, hmac: bytes, by: Principal, wanted_ms: int) -> Token:
        """TokenRefused if that cannot be done."""
        changed = await self._change(
            hmac, lambda token, now_ms: renewed(token, by, wanted_ms, self._lifetimes(), now_ms)
        )
        assert changed is not None
        return changed

    async def end(self, hmac: bytes, by: Principal, in_ms: int) -> Token | None:
        """End a token after a time; None if it was removed at once. TokenRefused if that cannot be done."""
        return await self._change(hmac, lambda token, now_ms: ended(token, by, in_ms, now_ms))

    async def _change(self, hmac: bytes, change: Callable[[Token, int], Token | None]) -> Token | None:
        registry = self._session()
        while True:
            token_id = self._ids.get(hmac)
            path = token_nodes.path_of(token_id or "")
            node = registry.find(path) if token_id is not None else None
            if token_id is None or node is None:
                raise TokenRefused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
            changed = change(self._known[token_id].token, self._clock.now_ms())
            operation: Operation
            if changed is None:
                operation = Delete(path, node.version)
            else:
                operation = Set(path, token_nodes.write(changed), node.version)
            try:
                await registry.multi([operation, token_nodes.announcement(token_id)])
            except Conflict:  # somebody else was faster
                await registry.refresh(path)
                if registry.find(path) == node:
                    raise
            else:
                return changed

    def _session(self) -> Registry:
        if self._registry is None:
            raise RegistryError("there is no session with the registry yet")
        return self._registry

    def _lifetimes(self) -> Lifetimes:
        config = self._config
        return Lifetimes(config.delegation_token_expiry_time_ms, config.delegation_token_max_lifetime_ms)

    # --- the end ---

    def _look_for_expired(self) -> None:
        now_ms = self._clock.now_ms()
        expired = [token_id for token_id, known in self._known.items() if known.token.is_expired(now_ms)]
        if expired and self._registry is not None and self._is_controller():
            self._spawn(self._remove(self._registry, expired))

    async def _remove(self, registry: Registry, token_ids: Iterable[str]) -> None:
        for token_id in token_ids:
            path = token_nodes.path_of(token_id)
            node = registry.find(path)
            if node is not None:
                # It was removed, or renewed just in time; or the registry is out of reach, until the next look.
                with suppress(RegistryError):
                    await registry.multi([Delete(path, node.version), token_nodes.announcement(token_id)])
