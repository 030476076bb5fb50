"""What the broker as a whole does about settings that have no effect, about stored ones that are wrong, and about a
registry that is lost while it starts, or that is not the one of its data."""

import asyncio

import pytest
import structlog.testing

from barnabas.broker.broker import Broker
from barnabas.broker.clock import SystemClock
from barnabas.broker.config import BrokerConfig, Operation, OperationKind, alter_broker_config, alter_topic_config
from barnabas.broker.controller.znodes import broker_config_path, write_configs
from barnabas.broker.network import Network
from barnabas.broker.obstacles import CannotStart
from barnabas.broker.registry.errors import SessionExpired
from barnabas.broker.registry.session import Session
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.broker.registry.memory import MemoryRegistry
from tests.broker.server.harness import connected
from tests.support.running_broker import create_topic, running


def warnings(logs: list[dict[str, str]]) -> list[tuple[str, str | None]]:
    return [(entry["settings"], entry.get("topic")) for entry in logs if "settings" in entry]


async def alter_broker(broker, name: str, value: str) -> None:
    operations = [Operation(OperationKind.SET, name, value)]
    await broker.config_follower.alter_broker(
        None, lambda present: alter_broker_config(present, operations, broker.config, cluster_wide=True)
    )


async def alter_topic(broker, topic: str, name: str, value: str) -> None:
    operations = [Operation(OperationKind.SET, name, value)]
    await broker.config_follower.alter_topic(
        topic, lambda present: alter_topic_config(present, operations, broker.config)
    )


async def test_a_setting_without_effect_is_warned_about_once_when_it_is_altered(tmp_path):
    async with running(tmp_path) as broker:
        with structlog.testing.capture_logs() as logs:
            await alter_broker(broker, "num.replica.fetchers", "2")
            await alter_broker(broker, "num.replica.fetchers", "3")
            await alter_broker(broker, "num.io.threads", "3")
            await alter_broker(broker, "message.max.bytes", "3000")
        assert warnings(logs) == [("num.replica.fetchers", None), ("num.io.threads", None)]
    with structlog.testing.capture_logs() as logs:
        async with running(tmp_path):
            pass
    assert warnings(logs) == [("num.replica.fetchers, num.io.threads", None)]


async def test_what_the_file_says_is_not_warned_about_again(tmp_path):
    with structlog.testing.capture_logs() as logs:
        async with running(tmp_path, num_replica_fetchers=2) as broker:
            await alter_broker(broker, "num.replica.fetchers", "3")
    assert warnings(logs) == []


async def test_a_topic_setting_without_effect_is_warned_about_once(tmp_path):
    async with running(tmp_path) as broker:
        with structlog.testing.capture_logs() as logs:
            await create_topic(broker, "one", preallocate="true", retention_ms=5)
            await create_topic(broker, "two", preallocate="true")
            await create_topic(broker, "three", preallocate="false")
            await alter_topic(broker, "three", "local.retention.ms", "7")
        assert warnings(logs) == [("preallocate", "one"), ("local.retention.ms", "three")]
    with structlog.testing.capture_logs() as logs:
        async with running(tmp_path):
            pass
    assert sorted(names for names, _ in warnings(logs)) == ["local.retention.ms", "preallocate"]


async def test_a_stored_value_that_would_lock_everybody_out_is_left_out_with_a_warning(tmp_path):
    async with running(tmp_path) as broker:
        for whose, configs in (None, {"max.connections": "0", "message.max.bytes": "3000"}), (0, {"bogus": "1"}):
            await broker.registry.create(broker_config_path(whose), write_configs(configs))
    with structlog.testing.capture_logs() as logs:
        async with running(tmp_path) as broker, connected(broker.server) as client:
            await client.ask(ApiKey.METADATA, MetadataRequest(topics=[]), 12)
            assert broker.config.message_max_bytes == 3000
    problems = [entry["problem"] for entry in logs if entry["event"] == "an altered setting is left out"]
    assert [problem.partition(" ")[0] for problem in problems] == ["max.connections", "bogus"]


class LosesItsSession(Session):
    """The session is lost once, while its broker registers."""

    lost = False

    async def multi(self, operations):
        if not LosesItsSession.lost and any(each.path.startswith("/brokers/ids/") for each in operations):
            LosesItsSession.lost = True
            raise SessionExpired("the session has expired")
        await super().multi(operations)


async def is_let_in(broker, user: str) -> bool:
    async with connected(broker.server) as client:
        await client.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(mechanism="PLAIN"), 1)
        login = SaslAuthenticateRequest(auth_bytes=f"\0{user}\0secret".encode())
        return not (await client.ask(ApiKey.SASL_AUTHENTICATE, login, 2)).error_code


async def test_users_that_were_replaced_at_run_time_stay_replaced_after_a_restart(tmp_path):
    def users(name: str) -> str:
        return f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{name}="secret";'

    settings = {
        "listeners": "CLIENTS://127.0.0.1:0",
        "listener_security_protocol_map": "CLIENTS:SASL_PLAINTEXT",
        "sasl_enabled_mechanisms": "PLAIN",
        "listener_name_clients_plain_sasl_jaas_config": users("alice"),
    }
    async with running(tmp_path, **settings) as broker:
        set_users = Operation(OperationKind.SET, "listener.name.clients.plain.sasl.jaas.config", users("bob"))
        await broker.config_follower.alter_broker(
            broker.config.node_id,
            lambda present: alter_broker_config(present, [set_users], broker.config, cluster_wide=False),
        )
        assert (await is_let_in(broker, "alice"), await is_let_in(broker, "bob")) == (False, True)
    async with running(tmp_path, **settings) as broker:
        assert (await is_let_in(broker, "alice"), await is_let_in(broker, "bob")) == (False, True)


async def test_a_start_survives_the_loss_of_zookeeper(tmp_path):
    """And it does not forget that the run before ended in a crash, which the cluster does not know yet."""
    loop = asyncio.get_running_loop()
    tree = MemoryRegistry()
    settings = {
        "zookeeper.connect": "localhost:2181",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path),
    }

    async def open_session():
        return LosesItsSession(tree)

    def broker():
        return Broker(BrokerConfig(settings), open_session, Network(loop), clock=SystemClock(loop), loop=loop)

    LosesItsSession.lost = True
    first = broker()
    await first.start()
    await first.kill()
    LosesItsSession.lost = False
    second = broker()
    await second.start()
    assert LosesItsSession.lost
    assert not second.replicas.directory.was_clean
    await second.stop()


async def test_a_registry_that_knows_nothing_of_the_data_is_refused(tmp_path):
    """ZooKeeper has lost its data, or another one is meant. Otherwise all partitions would be set aside."""
    async with running(tmp_path) as broker:
        await create_topic(broker)
    registry = tmp_path / "registry.db"
    registry.rename(tmp_path / "kept")
    with pytest.raises(CannotStart, match="knows no cluster, but this broker has partitions of the cluster"):
        async with running(tmp_path):
            pass
    assert (tmp_path / "t-0").is_dir()
    (tmp_path / "kept").replace(registry)
    async with running(tmp_path) as broker:
        assert broker.replicas.find("t", 0) is not None


async def test_a_data_directory_without_partitions_may_begin_a_cluster(tmp_path):
    async with running(tmp_path) as broker:
        cluster_id = broker.cluster.cluster_id
    (tmp_path / "registry.db").unlink()
    async with running(tmp_path) as broker:
        assert broker.cluster.cluster_id == cluster_id


async def test_a_broker_that_could_not_reach_the_others_does_not_start(tmp_path):
    """A controller could give it no orders, or it could give none as the controller."""
    loop = asyncio.get_running_loop()
    tree = MemoryRegistry()

    async def open_session():
        return Session(tree)

    def broker(broker_id: int, listener: str) -> Broker:
        settings = {
            "broker.id": str(broker_id),
            "zookeeper.connect": "localhost:2181",
            "listeners": f"{listener}://127.0.0.1:0",
            "listener.security.protocol.map": f"{listener}:PLAINTEXT",
            "inter.broker.listener.name": listener,
            "log.dirs": str(tmp_path / str(broker_id)),
        }
        return Broker(BrokerConfig(settings), open_session, Network(loop), clock=SystemClock(loop), loop=loop)

    first = broker(1, "PLAINTEXT")
    await first.start()
    with pytest.raises(CannotStart, match="no other broker of the cluster has a listener INSIDE"):
        await broker(2, "INSIDE").start()
    assert tree.find("/brokers/ids/2") is None
    await first.stop()
