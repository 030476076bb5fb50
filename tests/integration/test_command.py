"""`barnabas serve` as a process: what it prints and where, how it starts and stops, what it refuses."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from importlib.metadata import version

import pytest

from barnabas.client.wire import Wire
from barnabas.protocol.api import ApiKey
from barnabas.protocol.frames import request_frame
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.broker_process import BrokerProcess
from tests.support.ports import HeldPort

COMMAND = [sys.executable, "-m", "barnabas", "serve"]
WITHOUT_EFFECT = "num.network.threads"  # Kafka has it, and Barnabas has nothing like it


@pytest.fixture
def start():
    """Start `barnabas serve` with these arguments and nothing else, and wait for its first line."""
    processes = []
    environment = {**os.environ, "PYTHONUNBUFFERED": ""}  # so that Python does not flush what the broker should flush

    def start(*arguments, stderr=subprocess.PIPE):
        process = subprocess.Popen(
            [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment
        )
        processes.append(process)
        return process, process.stdout.readline()

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def refused(*arguments):
    """Run `barnabas serve` that cannot start; returns its exit code and what it said."""
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=60)
    assert done.stdout == ""
    return done.returncode, done.stderr


def port_of(line):
    return int(line.rpartition(":")[2])


def describe_cluster(port, host="127.0.0.1"):
    with Wire(host, port) as wire:
        request = DescribeClusterRequest(include_cluster_authorized_operations=False)
        return wire.ask(ApiKey.DESCRIBE_CLUSTER, request, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_line_when_it_is_ready_and_a_clean_end_on_a_signal(start, tmp_path, number):
    process, line = start("--listen", "127.0.0.1:0", "--data", str(tmp_path))
    assert re.fullmatch(r"barnabas ready on 127\.0\.0\.1:[1-9][0-9]*\n", line)
    assert describe_cluster(port_of(line)).error_code == 0
    process.send_signal(number)
    printed, logged = process.communicate(timeout=60)
    assert process.returncode == 0
    assert printed == ""
    assert "Traceback" not in logged


def test_several_brokers_are_ready_together_and_end_together(start, tmp_path):
    free = HeldPort()
    port = free.number
    process, line = start("--brokers", "3", "--listen", f"127.0.0.1:{port},0,0", "--data", str(tmp_path))
    assert re.fullmatch(rf"barnabas ready on 127\.0\.0\.1:{port}(,127\.0\.0\.1:[1-9][0-9]*){{2}}\n", line)
    addresses = [each.rpartition(":") for each in line.split()[-1].split(",")]
    for _, _, each in addresses:
        found = describe_cluster(int(each))
        assert sorted((broker.broker_id, broker.port) for broker in found.brokers) == [
            (number, int(address[2])) for number, address in enumerate(addresses)
        ]
    process.send_signal(signal.SIGTERM)
    printed, logged = process.communicate(timeout=60)
    assert (process.returncode, printed) == (0, "")
    assert "Traceback" not in logged


def test_it_ends_although_clients_are_connected_and_requests_under_way(start, tmp_path):
    process, line = start("--listen", "127.0.0.1:0", "--data", str(tmp_path))
    with Wire("127.0.0.1", port_of(line)) as idle, Wire("127.0.0.1", port_of(line)) as busy:
        busy.send(request_frame(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name="new")]), 12)[:-1])
        process.terminate()
        assert process.communicate(timeout=60)[0] == ""
        assert process.returncode == 0
        assert idle.receive() is None
        assert busy.receive() is None


def test_what_it_knew_is_there_after_a_restart(broker):
    with Wire("127.0.0.1", broker.port) as wire:
        wire.ask(ApiKey.METADATA, MetadataRequest(topics=[MetadataRequestTopic(name="kept")]), 12)
        before = wire.ask(ApiKey.METADATA, MetadataRequest(topics=None), 12)
    broker.stop()
    broker.start()
    with Wire("127.0.0.1", broker.port) as wire:
        after = wire.ask(ApiKey.METADATA, MetadataRequest(topics=None), 12)
    assert [topic.name for topic in after.topics] == ["kept"]
    assert after == before


def test_logs_are_json_unless_on_a_terminal(tmp_path):
    with BrokerProcess(tmp_path, settings={WITHOUT_EFFECT: "3"}) as broker:
        with Wire("127.0.0.1", broker.port) as wire:
            wire.send(b"nonsense")
            assert wire.receive() is None
    entries = [json.loads(line) for line in broker.log.splitlines()]
    assert {"warning", "info"} <= {entry["level"] for entry in entries}
    assert all(entry["timestamp"].endswith("Z") for entry in entries)
    (closed,) = [entry for entry in entries if entry["event"] == "connection closed"]
    assert closed["peer"].startswith("127.0.0.1:")
    assert "a frame of" in closed["reason"]


def test_logs_are_for_people_on_a_terminal(start, tmp_path):
    terminal, end = pty.openpty()
    process, line = start(
        "--listen", "127.0.0.1:0", "--data", str(tmp_path), f"--config={WITHOUT_EFFECT}=3", stderr=end
    )
    os.close(end)
    assert line.startswith("barnabas ready on ")
    process.terminate()
    process.communicate(timeout=60)
    shown = b""
    while chunk := read_terminal(terminal):
        shown += chunk
    os.close(terminal)
    first = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode()).splitlines()[0]
    assert re.fullmatch(rf"\d\d:\d\d:\d\d\.\d+ \[warning *\] .*{WITHOUT_EFFECT}.*", first)


def read_terminal(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that its other end is closed
        return b""


def test_it_says_its_version_and_where_its_data_is(tmp_path):
    with BrokerProcess(tmp_path / "data") as broker:
        (started,) = [entry for entry in map(json.loads, broker.log.splitlines()) if "started" in entry["event"]]
    assert (started["event"], started["data"]) == (f"barnabas {version('barnabas')} started", str(tmp_path / "data"))


def test_a_second_broker_on_the_same_data_directory_is_refused(broker):
    code, said = refused("--listen", "127.0.0.1:0", "--data", str(broker.data))
    assert code == 1
    assert said.startswith("barnabas: ")
    assert str(broker.data) in said
    assert "in use" in said
    assert describe_cluster(broker.port).error_code == 0


def test_a_killed_broker_leaves_its_data_directory_free(broker):
    broker.kill()
    broker.start()
    assert describe_cluster(broker.port).error_code == 0


def test_a_port_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = refused("--listen", address, "--data", str(tmp_path))
    assert code == 1
    assert said == f"barnabas: cannot listen: {address}: Address already in use\n"


def test_a_host_that_does_not_exist_is_named(tmp_path):
    code, said = refused("--listen", "no-such-host.invalid:9092", "--data", str(tmp_path))
    assert code == 1
    assert said.startswith("barnabas: cannot listen: no-such-host.invalid:9092: ")


def test_a_data_directory_that_cannot_be_one_is_named(tmp_path):
    file = tmp_path / "file"
    file.touch()
    code, said = refused("--listen", "127.0.0.1:0", "--data", str(file))
    assert code == 1
    assert said == f"barnabas: cannot use the data directory {file}: It is not a directory\n"


def test_the_data_directory_of_a_kafka_with_kraft_is_refused_and_left_as_it_is(tmp_path):
    for name in ("__cluster_metadata-0", "orders-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{0:020}.log").touch()
    (tmp_path / "meta.properties").write_text(
        "version=1\nnode.id=0\ncluster.id=MkU3OEVBNTcwNTJENDM2Qg\ndirectory.id=Bt-IogykQWmN2lZau0ol6Q\n"
    )
    code, said = refused("--listen", "127.0.0.1:0", "--data", str(tmp_path))
    assert code == 1
    assert said.startswith(f"barnabas: cannot use the data directory {tmp_path}: it belongs to Apache Kafka with KRaft")
    assert sorted(os.listdir(tmp_path)) == ["__cluster_metadata-0", "meta.properties", "orders-0"]


def test_a_journal_that_cannot_be_written_is_named(tmp_path):
    code, said = refused(
        "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), "--journal", str(tmp_path / "a/b")
    )
    assert code == 1
    assert said.splitlines()[-1] == f"barnabas: {tmp_path}/a/b: No such file or directory"


def test_an_address_of_the_console_that_is_taken_is_named(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, said = refused("--listen", "127.0.0.1:0", "--data", str(tmp_path), "--console", address)
    assert code == 1
    assert said.splitlines()[-1] == f"barnabas: cannot listen for the console: {address}: Address already in use"


def test_a_damaged_registry_is_named(tmp_path):
    (tmp_path / "registry.db").write_bytes(b"anything but a database" * 1000)
    code, said = refused("--listen", "127.0.0.1:0", "--data", str(tmp_path))
    assert code == 1
    assert said.startswith(f"barnabas: cannot use the data directory {tmp_path}: {tmp_path}/registry.db")
    assert said.count("\n") == 1


def test_other_users_may_read_nothing_of_what_it_writes(start, tmp_path):
    data, journal = tmp_path / "data", tmp_path / "journal"
    process, line = start("--listen", "127.0.0.1:0", "--data", str(data), "--journal", str(journal))
    with Wire("127.0.0.1", port_of(line)) as wire:
        request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=True)
        assert not wire.ask(ApiKey.METADATA, request, 12).topics[0].error_code
        written = [data, journal, *data.rglob("*")]
        assert {path.name for path in written} > {"data", "journal", "registry.db", "t-0", f"{0:020d}.log"}
        assert [path for path in written if path.stat().st_mode & 0o077] == []
    process.terminate()


def test_settings_that_are_wrong_keep_it_from_starting(tmp_path):
    data = tmp_path / "data"
    code, said = refused("--data", str(data), "--config", "no.such.setting=1", "--config", "num.partitions=many")
    assert code == 2
    assert "no.such.setting" in said
    assert "num.partitions" in said
    assert not data.exists()


def test_names_that_mean_nothing_here_are_accepted_with_one_warning(tmp_path):
    settings = {WITHOUT_EFFECT: "3", "controller.quorum.voters": "1@localhost:9093"}
    with BrokerProcess(tmp_path, settings=settings) as broker:
        (warning,) = [entry for entry in map(json.loads, broker.log.splitlines()) if entry["level"] == "warning"]
    assert all(name in warning["event"] for name in settings)


def test_the_command_line_wins_over_the_file_and_the_last_value_over_the_first(start, tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(
        f"""
        node.id = 5
        broker.rack = from the file
        listeners = PLAINTEXT://127.0.0.1:1
        log.dirs = {tmp_path / "other"}
        """
    )
    _, line = start(
        *(str(file), "--config", "node.id=6", "--config", "node.id=7"),
        *("--listen", "127.0.0.1:0", "--data", str(tmp_path / "data")),
    )
    (broker,) = describe_cluster(port_of(line)).brokers
    assert (broker.broker_id, broker.rack) == (7, "from the file")
    assert (tmp_path / "data").exists()
    assert not (tmp_path / "other").exists()


def test_the_file_alone_is_enough(start, tmp_path):
    """A server.properties as people have for Apache Kafka, including its controller."""
    file = tmp_path / "server.properties"
    file.write_text(
        f"""
        process.roles=broker,controller
        node.id=1
        controller.quorum.bootstrap.servers=localhost:9093
        listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093
        inter.broker.listener.name=PLAINTEXT
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
        num.network.threads=3
        num.io.threads=8
        socket.send.buffer.bytes=102400
        socket.request.max.bytes=104857600
        log.dirs={tmp_path / "data"}
        num.partitions=1
        offsets.topic.replication.factor=1
        transaction.state.log.replication.factor=1
        log.retention.hours=168
        """
    )
    _, line = start(str(file))
    (broker,) = describe_cluster(port_of(line)).brokers
    assert (broker.broker_id, broker.port) == (1, port_of(line))
    assert (tmp_path / "data").exists()
