"""The broker as an object. One is shared by the tests that leave it running; the others have one each."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
import weakref
from pathlib import Path

import pytest
from kafka import KafkaProducer

from barnabas import Barnabas, BarnabasError, BrokerFailed, ControlFailed

pytestmark = pytest.mark.slow  # starts processes


@pytest.fixture
def broker(kafka_broker):
    kafka_broker.reset()
    return kafka_broker


def gone(pid):
    """Whether a process has ended; a zombie counts as ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_it_is_ready_when_the_block_begins_and_gone_when_it_ends():
    with Barnabas(num_partitions=3) as broker:
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers).close()
        pid, folder = broker.pid, Path(broker._temporary)
        assert broker.running
        assert folder.is_dir()
        topic = broker.create_topic()
        assert len(broker.state["topics"][topic]["partitions"]) == 3
    assert gone(pid)
    assert not folder.exists()
    assert not broker.running
    assert '"event": "stopped"' in broker.log
    with pytest.raises(BrokerFailed):
        _ = broker.pid


def test_its_repr_has_its_address():
    broker = Barnabas()
    assert repr(broker) == "<Barnabas, not started>"
    with broker:
        assert repr(broker) == f"<Barnabas {broker.bootstrap_servers}>"
    assert repr(broker) == f"<Barnabas {broker.bootstrap_servers}, not running>"


async def test_async_with_does_not_block_the_loop():
    ticks = 0

    async def tick():
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())
    async with Barnabas() as broker:
        assert broker.running
        assert ticks > 10
    assert not broker.running
    ticking.cancel()


def test_settings_may_be_given_by_kafkas_names_or_with_underscores():
    broker = Barnabas({"num.partitions": 2, "auto.create.topics.enable": False}, log_retention_ms=5)
    assert broker.settings == {
        "num.partitions": "2",
        "auto.create.topics.enable": "false",
        "log.retention.ms": "5",
    }


def test_an_unknown_setting_is_reported_before_anything_starts():
    with pytest.raises(BrokerFailed, match=r"no\.such\.setting"):
        Barnabas(no_such_setting=1).start()


def test_before_it_is_started_its_members_raise():
    broker = Barnabas()
    with pytest.raises(BrokerFailed, match="not been started"):
        _ = broker.bootstrap_servers
    with pytest.raises(BrokerFailed, match="not running"):
        broker.kill()
    broker.stop()  # which is not an error


def test_after_it_is_stopped_its_members_say_so():
    with Barnabas() as broker:
        broker.stop()
        with pytest.raises(BrokerFailed, match="the broker has been stopped"):
            broker.reset()


def test_killed_and_restarted_it_has_the_same_data_at_the_same_address():
    with Barnabas() as broker:
        topic = broker.create_topic("t")
        address, control = broker.bootstrap_servers, broker.control.url
        producer = KafkaProducer(bootstrap_servers=address)
        producer.send(topic, b"a").get(30)
        broker.kill()
        assert not broker.running
        broker.restart()
        assert (broker.bootstrap_servers, broker.control.url) == (address, control)
        assert producer.send(topic, b"b").get(30).offset == 1
        broker.restart()  # cleanly this time
        assert broker.state["topics"]["t"]["partitions"][0]["log_end_offset"] == 2
        with pytest.raises(BarnabasError, match="already running"):
            broker.start()
        producer.close()


def test_a_broker_that_ended_is_reported_with_the_end_of_its_log():
    with Barnabas() as broker:
        os.kill(broker.pid, signal.SIGKILL)
        broker._process.wait(60)
        with pytest.raises(BrokerFailed, match=r"(?s)ended with -9. It logged:\n.*started"):
            _ = broker.state


def test_a_fault_may_be_gone_before_its_block_ends(broker):
    with broker.faults.add(api="Produce", delay_ms=1) as fault:
        broker.reset()
    assert fault.hits == 0


def test_an_address_of_ipv6_is_written_as_clients_want_it():
    broker = Barnabas(host="::1", port=9092)
    assert broker.bootstrap_servers == "[::1]:9092"
    assert Barnabas(host="[::1]", port=9092).bootstrap_servers == "[::1]:9092"


def test_data_of_the_users_own_is_kept(tmp_path):
    with Barnabas(data=tmp_path / "data") as broker:
        broker.create_topic("t")
    assert (tmp_path / "data" / "t-0").is_dir()
    with Barnabas(data=tmp_path / "data") as broker:
        assert "t" in broker.state["topics"]


def test_what_is_refused_comes_with_the_reason(broker):
    broker.create_topic("t")
    with pytest.raises(ControlFailed, match="TOPIC_ALREADY_EXISTS") as refusal:
        broker.create_topic("t")
    assert refusal.value.status == 409
    with pytest.raises(ControlFailed) as refusal:
        broker.clock.advance(-1)
    assert (refusal.value.status, refusal.value.field) == (400, "seconds")
    with pytest.raises(ControlFailed, match="no snapshot 'none'"):
        broker.restore("none")
    with pytest.raises(ControlFailed, match="letters"):
        broker.snapshot("../outside")


def test_topics_without_a_name_get_one_that_is_free(broker):
    broker.create_topic(f"topic-{next(broker._topics) + 1}")
    names = {broker.create_topic(partitions=2, retention_ms=1000) for _ in range(3)}
    assert len(names) == 3
    topics = broker.state["topics"]
    assert all(topics[name]["configs"] == {"retention.ms": "1000"} for name in names)
    for name in names:
        broker.delete_topic(name)
    assert not names & broker.state["topics"].keys()


def test_the_state_has_groups_transactions_producers_and_connections(broker):
    topic = broker.create_topic()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="it", enable_idempotence=True)
    producer.send(topic, b"a").get(30)
    state = broker.state
    assert {"topic": topic, "partition": 0}.items() <= state["producers"][0].items()
    assert "it" in {each["client_id"] for each in state["connections"]}
    assert (state["groups"], state["transactions"], state["set_aside"]) == ({}, {}, [])
    assert broker.control.call("GET", "/state/producers") == state["producers"]
    producer.close()


ABANDONED = """
    import os, signal, sys
    from barnabas import Barnabas
    broker = Barnabas().start()
    print(broker.pid, broker._temporary, flush=True)
    {ending}
"""


@pytest.mark.parametrize(
    "ending",
    ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(0)", "sys.exit(1)", "del broker; input()", "os.abort()"],
)
def test_no_broker_is_left_behind_however_its_test_ends(ending):
    program = textwrap.dedent(ABANDONED).format(ending=ending)
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        pid, folder = child.stdout.readline().split()
        wait_until(lambda: gone(int(pid)))
        wait_until(lambda: not os.path.exists(folder))
        child.stdin.close()


def test_a_process_that_was_forked_from_the_test_leaves_the_broker_alone(broker):
    child = os.fork()
    if not child:
        weakref.finalize._exitfunc()  # what the end of the interpreter calls
        os._exit(0)
    os.waitpid(child, 0)
    assert broker.state["topics"] == {}


INTERRUPTED = """
import os, signal
from barnabas import Barnabas
signal.signal(signal.SIGINT, signal.default_int_handler)
with Barnabas() as broker:
    try:
        os.killpg(0, signal.SIGINT)
        signal.pause()
    except KeyboardInterrupt:
        print(broker.state["topics"])
"""


def test_ctrl_c_is_for_the_tests_and_not_for_the_broker():
    """A terminal sends it to all processes of a group."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], start_new_session=True, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout.strip(), done.stderr) == ("{}", "")


PRINTS_ITS_TOPICS = "from barnabas import Barnabas\nwith Barnabas() as broker: print(broker.state['topics'])"


def not_meant(folder, *names):
    for name in names:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("raise RuntimeError('not meant')")


def test_packages_of_the_users_project_on_the_path_do_not_matter(tmp_path):
    not_meant(tmp_path, "broker", "pipeline", "protocol", "storage", "tests", "client", "command", "control", "errors")
    done = subprocess.run(
        [sys.executable, "-c", PRINTS_ITS_TOPICS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout.strip(), done.stderr) == ("{}", "")


def test_the_broker_imports_its_dependencies_and_not_modules_of_the_users_project(tmp_path):
    not_meant(tmp_path, "cramjam", "crc32c", "re2", "structlog", "uvloop")
    (tmp_path / "structlog.py").write_text("raise RuntimeError('not meant')")
    done = subprocess.run(
        [sys.executable, "-c", PRINTS_ITS_TOPICS],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout.strip(), done.stderr) == ("{}", "")


def test_the_broker_imports_nothing_from_the_current_directory(tmp_path):
    """Nor does the user's process here, as with the bare `pytest`: its path begins with the folder of the script."""
    not_meant(tmp_path, "asyncio", "barnabas", "pickle", "sqlite3", "storage", "structlog", "uvloop")
    command = [sys.executable, "-P", "-c", PRINTS_ITS_TOPICS]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("{}", "")


def test_a_pytest_run_without_a_broker_imports_next_to_nothing():
    program = """
        import sys, pytest
        before = set(sys.modules)
        import barnabas.pytest_plugin
        print(sorted(set(sys.modules) - before))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "['barnabas', 'barnabas.pytest_plugin']"
