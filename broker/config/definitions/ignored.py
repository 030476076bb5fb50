"""Names that Apache Kafka knows and that have no effect in Barnabas.

They are accepted, so that the server.properties that people already have just works, and a warning lists them. Those in
REFUSED are not accepted. A name leaves this file when a setting of that name is declared.
"""

from typing import Any, NamedTuple

from barnabas.broker.config.values import Boolean, ConfigType, DecimalNumber, Kind, WholeNumber

_THREADS_AND_QUEUES = """
    background.threads delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
    group.coordinator.append.linger.ms group.coordinator.background.threads
    group.coordinator.cached.buffer.max.bytes group.coordinator.threads num.io.threads num.network.threads
    num.replica.alter.log.dirs.threads producer.purgatory.purge.interval.requests queued.max.request.bytes
    queued.max.requests
"""

_KRAFT = """
    broker.heartbeat.interval.ms broker.session.timeout.ms controller.performance.always.log.threshold.ms
    controller.performance.sample.period.ms controller.quorum.append.linger.ms controller.quorum.auto.join.enable
    controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
    controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
    controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
    controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
    controller.socket.timeout.ms cordoned.log.dirs early.start.listeners initial.broker.registration.timeout.ms
    internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
    internal.metadata.max.batch.size.in.bytes log.dir.failure.timeout.ms metadata.log.dir
    metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
    metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms metadata.max.retention.bytes
    metadata.max.retention.ms server.max.startup.time.ms unstable.api.versions.enable
    unstable.feature.versions.enable
"""

_TIERED_STORAGE = """
    follower.fetch.last.tiered.offset.enable log.local.retention.bytes log.local.retention.ms
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
    remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
    remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
    remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
    remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
    remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
    remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
    remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
    remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
    remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
    remote.log.reader.max.pending.tasks remote.log.reader.threads remote.log.storage.manager.class.name
    remote.log.storage.manager.class.path remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
"""

_SHARE_GROUPS = """
    group.share.persister.class.name share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
    share.coordinator.load.buffer.size share.coordinator.state.topic.compression.codec share.coordinator.threads
    share.fetch.purgatory.purge.interval.requests
"""

_QUOTAS_AND_METRICS = """
    alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
    client.quota.callback.class
    follower.replication.throttled.rate kafka.metrics.polling.interval.secs kafka.metrics.reporters
    leader.replication.throttled.rate metric.reporters metrics.num.samples metrics.recording.level
    metrics.sample.window.ms
    replica.alter.log.dirs.io.max.bytes.per.second replication.quota.window.num
    replication.quota.window.size.seconds telemetry.max.bytes
"""

_JAVA_SECURITY = """
    principal.builder.class sasl.client.callback.handler.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
    sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    sasl.login.callback.handler.class sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    sasl.mechanism.controller.protocol sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
    sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
    sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
    sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
    sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
    sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
    sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
    sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwt.retriever.class
    sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
    security.providers ssl.allow.dn.changes ssl.allow.san.changes ssl.engine.factory.class
    ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation
    ssl.trustmanager.algorithm
"""

_PLUGINS = """
    alter.config.policy.class.name config.providers create.topic.policy.class.name
"""

_BETWEEN_BROKERS = """
    socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""

# Known to releases before 4.0 only.
_OLDER_RELEASES = """
    advertised.host.name advertised.port auto.include.jmx.reporter broker.id.generation.enable
    control.plane.listener.name controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms
    eligible.leader.replicas.enable group.coordinator.new.enable group.share.enable
    group.share.max.groups host.name
    log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms
    metadata.log.segment.min.bytes offsets.commit.required.acks password.encoder.cipher.algorithm
    password.encoder.iterations password.encoder.key.length password.encoder.keyfactory.algorithm
    password.encoder.old.secret password.encoder.secret port quota.consumer.default quota.producer.default
    reserved.broker.max.id zookeeper.clientCnxnSocket
    zookeeper.max.in.flight.requests zookeeper.metadata.migration.enable
    zookeeper.metadata.migration.min.batch.size zookeeper.set.acl
    zookeeper.ssl.cipher.suites zookeeper.ssl.client.enable zookeeper.ssl.crl.enable
    zookeeper.ssl.enabled.protocols zookeeper.ssl.endpoint.identification.algorithm
    zookeeper.ssl.keystore.location zookeeper.ssl.keystore.password zookeeper.ssl.keystore.type
    zookeeper.ssl.ocsp.enable zookeeper.ssl.protocol zookeeper.ssl.truststore.location
    zookeeper.ssl.truststore.password zookeeper.ssl.truststore.type zookeeper.sync.time.ms
"""

# Those of the above that can be altered in Kafka at run-time: for the whole cluster, or for one broker.
_CLUSTER_WIDE = """
    background.threads config.providers follower.fetch.last.tiered.offset.enable
    follower.replication.throttled.rate group.coordinator.cached.buffer.max.bytes
    leader.replication.throttled.rate
    log.local.retention.bytes log.local.retention.ms metric.reporters num.io.threads num.network.threads
    remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
    remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
    remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
    remote.log.manager.follower.thread.pool.size remote.log.reader.threads
    replica.alter.log.dirs.io.max.bytes.per.second share.coordinator.cached.buffer.max.bytes
"""

_PER_BROKER = """
    cordoned.log.dirs principal.builder.class sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
    sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
    sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
    ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol
    ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
"""


# What Kafka takes for those of them that are numbers or true or false. It refuses others when a setting is altered.
_COUNT = WholeNumber(ConfigType.INT, 1, None)
_SIZE = WholeNumber(ConfigType.LONG, 1, None)
_BUFFER = WholeNumber(ConfigType.INT, 524288, None)
_INTERVAL = WholeNumber(ConfigType.INT, 0, None)
_LOCAL_RETENTION = WholeNumber(ConfigType.LONG, -2, None)
_SECONDS = WholeNumber(ConfigType.SHORT, None, None)
_FACTOR = DecimalNumber(None, None)

ALTERABLE_KINDS: dict[str, Kind[Any]] = {
    "background.threads": _COUNT,
    "follower.fetch.last.tiered.offset.enable": Boolean(),
    "group.coordinator.cached.buffer.max.bytes": _BUFFER,
    "log.local.retention.bytes": _LOCAL_RETENTION,
    "log.local.retention.ms": _LOCAL_RETENTION,
    "num.io.threads": _COUNT,
    "num.network.threads": _COUNT,
    "remote.fetch.max.wait.ms": _COUNT,
    "remote.list.offsets.request.timeout.ms": _SIZE,
    "remote.log.index.file.cache.total.size.bytes": _SIZE,
    "remote.log.manager.copier.thread.pool.size": _COUNT,
    "remote.log.manager.copy.max.bytes.per.second": _SIZE,
    "remote.log.manager.expiration.thread.pool.size": _COUNT,
    "remote.log.manager.fetch.max.bytes.per.second": _SIZE,
    "remote.log.manager.follower.thread.pool.size": _COUNT,
    "remote.log.reader.threads": _COUNT,
    "sasl.kerberos.min.time.before.relogin": WholeNumber(ConfigType.LONG, None, None),
    "sasl.kerberos.ticket.renew.jitter": _FACTOR,
    "sasl.kerberos.ticket.renew.window.factor": _FACTOR,
    "sasl.login.refresh.buffer.seconds": _SECONDS,
    "sasl.login.refresh.min.period.seconds": _SECONDS,
    "sasl.login.refresh.window.factor": _FACTOR,
    "sasl.login.refresh.window.jitter": _FACTOR,
    "share.coordinator.cached.buffer.max.bytes": _BUFFER,
}


def _names(*texts: str) -> frozenset[str]:
    return frozenset(" ".join(texts).split())


IGNORED = _names(
    _THREADS_AND_QUEUES,
    _KRAFT,
    _TIERED_STORAGE,
    _SHARE_GROUPS,
    _QUOTAS_AND_METRICS,
    _JAVA_SECURITY,
    _PLUGINS,
    _BETWEEN_BROKERS,
    _OLDER_RELEASES,
)
IGNORED_CLUSTER_WIDE = _names(_CLUSTER_WIDE)
IGNORED_PER_BROKER = _names(_PER_BROKER)

# Settings of plug-ins. Kafka does not know their full names.
IGNORED_PREFIXES = ("config.providers.", "rsm.config.", "rlmm.config.")


class Refusal(NamedTuple):
    """Why a setting must not be ignored, and what to do instead."""

    why: str
    harmless: frozenset[str] = frozenset({""})  # values that ask for nothing but what the broker does


def _java(what: str, *kafkas_own: str) -> Refusal:
    return Refusal(f"Barnabas cannot run {what} written in Java. Remove the setting", frozenset({"", *kafkas_own}))


def _unless_false(why: str) -> Refusal:
    return Refusal(why, frozenset({"", "false", "False", "FALSE"}))


_KAFKAS_SECURITY = "org.apache.kafka.common.security"

# Ignoring these would weaken security or lose data.
REFUSED = {
    "alter.config.policy.class.name": _java("policies"),
    "create.topic.policy.class.name": _java("policies"),
    "config.providers": Refusal(
        "Barnabas does not look up values such as ${file:…}. Remove the setting, and write the values themselves"
    ),
    "principal.builder.class": _java(
        "principal builders", f"{_KAFKAS_SECURITY}.authenticator.DefaultKafkaPrincipalBuilder"
    ),
    "sasl.oauthbearer.jwt.validator.class": _java(
        "validators of tokens",
        f"{_KAFKAS_SECURITY}.oauthbearer.DefaultJwtValidator",
        f"{_KAFKAS_SECURITY}.oauthbearer.BrokerJwtValidator",
    ),
    "ssl.engine.factory.class": _java("TLS engines", f"{_KAFKAS_SECURITY}.ssl.DefaultSslEngineFactory"),
    "zookeeper.set.acl": _unless_false("Barnabas does not protect its nodes in ZooKeeper. Leave it false"),
    "zookeeper.ssl.client.enable": _unless_false("Barnabas does not use TLS with ZooKeeper. Leave it false"),
}
