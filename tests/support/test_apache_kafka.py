import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import apache_kafka
from tests.support.apache_kafka import ApacheKafka, JavaError, run_java, run_tool


@pytest.fixture
def forget_what_was_found() -> Iterator[None]:
    apache_kafka.java.cache_clear()
    apache_kafka.libraries.cache_clear()
    yield
    apache_kafka.java.cache_clear()
    apache_kafka.libraries.cache_clear()


@pytest.mark.usefixtures("forget_what_was_found")
class TestUnavailable:
    def test_says_that_java_is_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", str(tmp_path))
        assert apache_kafka.unavailable() == "Java 17 or later is needed, and there is no java command"

    def test_says_that_java_is_too_old(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        command(tmp_path / "bin" / "java", "echo 'openjdk version \"11.0.2\"' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        reason = apache_kafka.unavailable()
        assert reason is not None
        assert "Java 17 or later is needed" in reason
        assert "11.0.2" in reason

    def test_says_that_maven_is_missing(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        command(tmp_path / "bin" / "java", "echo 'openjdk version \"21\"' >&2")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path))
        monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path / "cache"))
        reason = apache_kafka.unavailable()
        assert reason == "Maven is needed to download Apache Kafka 4.3.1, and there is no mvn command"

    def test_says_what_maven_said_and_leaves_nothing_behind(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        command(tmp_path / "bin" / "java", "echo 'openjdk version \"21\"' >&2")
        command(tmp_path / "bin" / "mvn", "/bin/mkdir libs; echo no route to host; exit 1")
        monkeypatch.setenv("JAVA_HOME", str(tmp_path))
        monkeypatch.setenv("PATH", str(tmp_path / "bin"))
        monkeypatch.setenv("BARNABAS_CACHE", str(tmp_path / "cache"))
        reason = apache_kafka.unavailable()
        assert reason is not None
        assert "no route to host" in reason
        assert [each.suffix for each in (tmp_path / "cache" / "apache-kafka-4.3.1").iterdir()] == [".lock"]


def command(path: Path, script: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.mark.java
class TestRunJava:
    def test_a_source_file_finds_kafkas_classes(self, tmp_path: Path) -> None:
        source = tmp_path / "Version.java"
        source.write_text(
            "class Version { public static void main(String[] arguments) { System.out.println(arguments[0] + "
            "org.apache.kafka.common.utils.AppInfoParser.getVersion()); } }"
        )
        assert run_java(source, "Kafka ").stdout == "Kafka 4.3.1\n"

    def test_a_failure_is_an_error_with_what_was_printed(self) -> None:
        with pytest.raises(JavaError, match="broken is not a recognized option"):
            run_tool("kafka-dump-log", "--broken")

    def test_a_source_file_that_does_not_compile_is_an_error(self, tmp_path: Path) -> None:
        source = tmp_path / "Broken.java"
        source.write_text("class Broken { int number = true; }")
        with pytest.raises(JavaError, match=r"(?s)Broken.java does not compile.*incompatible types"):
            run_java(source)

    def test_a_changed_source_file_is_compiled_again(self, tmp_path: Path) -> None:
        source = tmp_path / "Word.java"
        for word in ("castle", "village"):
            source.write_text(
                f'class Word {{ public static void main(String[] arguments) {{ System.out.print("{word}"); }} }}'
            )
            assert run_java(source).stdout == word

    def test_one_that_does_not_end_is_an_error(self, tmp_path: Path) -> None:
        source = tmp_path / "Forever.java"
        source.write_text(
            "class Forever { public static void main(String[] arguments) throws Exception "
            "{ System.out.println(1); Thread.currentThread().join(); } }"
        )
        with pytest.raises(JavaError, match="took more than 3 s"):
            run_java(source, timeout=3)


@pytest.mark.java
class TestRunTool:
    def test_gives_what_each_printed_and_how_it_ended(self) -> None:
        failed = run_tool("kafka-dump-log", "--broken", check=False)
        assert failed.returncode == 1
        assert "broken is not a recognized option" in failed.stderr
        done = run_tool("kafka-dump-log", "--version")
        assert done.returncode == 0
        assert done.stdout.startswith("4.3.1")
        assert done.stderr == ""

    def test_one_that_does_not_end_is_an_error_and_the_next_one_runs(self) -> None:
        with pytest.raises(JavaError, match=r"(?s)took more than 8 s and had printed.*could not be established"):
            run_tool("kafka-topics", "--bootstrap-server", "127.0.0.1:1", "--list", timeout=8)
        assert run_tool("kafka-topics", "--version").stdout.startswith("4.3.1")


@pytest.mark.java
class TestApacheKafka:
    def test_starts_with_the_given_properties_serves_and_keeps_its_data(self) -> None:
        with ApacheKafka({"num.partitions": "3"}) as kafka:
            assert kafka.start_seconds is not None
            run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--create", "--topic", "castle")
            kafka.stop()
            kafka.start()
            described = run_tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--describe").stdout
            assert "Topic: castle" in described
            assert "PartitionCount: 3" in described
            assert (kafka.data_directory / "castle-2").is_dir()
        assert not kafka.directory.exists()

    def test_a_broker_that_cannot_start_says_why(self) -> None:
        kafka = ApacheKafka({"authorizer.class.name": "no.such.Authorizer"})
        with pytest.raises(JavaError, match=r"(?s)while starting.*no\.such\.Authorizer"), kafka:
            pass
        assert not kafka.directory.exists()
