"""A pipeline tells a console how it is doing; here a server that keeps what it hears."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from barnabas.pipeline.announcing import Announcement, Announcer, console_of
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.model import ParquetSink, Pipeline, Source, TopicSink
from barnabas.pipeline.progress import QueryState

PIPELINE = Pipeline(
    name="orders",
    bootstrap="127.0.0.1:9092",
    checkpoint="/tmp/none",
    sources=(Source("orders", ("orders",)),),
    transforms=(),
    sinks=(TopicSink("out", "orders", "paid"), ParquetSink("files", "orders", "/tmp/files")),
)


@pytest.fixture
def heard():
    """Requests that come, and the address that they come to."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            requests.append((self.path, self.headers.get("Authorization"), body))
            self.send_response(200)
            self.end_headers()

        def do_GET(self):
            body = json.dumps({"brokers": [{"id": 0, "address": "127.0.0.1:9092"}]}).encode()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body if self.path == "/api/overview" else b"nothing")

        def log_message(self, *arguments):
            pass

    requests = []
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield requests, f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_last_state_is_told(heard, monkeypatch):
    requests, address = heard
    monkeypatch.setenv("BARNABAS_CONSOLE_TOKEN", "s3cret")
    states = {"out": QueryState("out", "to the topic paid", rows_in=50, rows_out=40, lag={"orders": 50})}
    told = Announcement(PIPELINE, states, once=True)
    announcer = Announcer(f"http://{address}/", told)
    told.state = "ended"
    announcer.close()
    path, authorization, body = requests[-1]
    assert (path, authorization) == ("/api/pipelines", "Bearer s3cret")
    assert (body["name"], body["state"], body["topics"]) == ("orders", "ended", ["orders", "paid"])
    (query,) = body["queries"]
    assert (query["read"], query["written"], query["lag"], query["end"]) == (50, 40, 50, 100)
    assert query["sinks"] == [{"topic": "paid"}]


def test_bad_records_that_several_queries_skip_are_told_once():
    states = {
        "out": QueryState("out", "to the topic paid", bad_of={"orders": 3, "users": 1}),
        "files": QueryState("files", "to files", bad_of={"orders": 2}),
    }
    told = Announcement(PIPELINE, states, once=True)()
    assert (told["bad"], [query["bad"] for query in told["queries"]]) == (4, [4, 2])


def test_a_user_in_the_address(heard):
    requests, address = heard
    Announcer(f"http://alice:s%40cret@{address}", Announcement(PIPELINE, {}, once=False)).close()
    assert requests[-1][1] == "Basic YWxpY2U6c0BjcmV0"


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:9092", "localhost:9092", "10.0.0.1:9092,[::1]:9092"])
def test_the_console_at_the_usual_address_is_told_of_pipelines_of_its_broker(heard, monkeypatch, bootstrap):
    monkeypatch.delenv("BARNABAS_CONSOLE", raising=False)
    usual = f"http://{heard[1]}"
    assert console_of(bootstrap, usual) == usual


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:19092", "kafka.example.com:9092", "nonsense"])
def test_somebody_elses_console_is_not_told(heard, monkeypatch, bootstrap):
    monkeypatch.delenv("BARNABAS_CONSOLE", raising=False)
    assert console_of(bootstrap, f"http://{heard[1]}") is None


def test_whoever_says_so_tells_another_console_or_nobody(heard, monkeypatch):
    usual = f"http://{heard[1]}"
    monkeypatch.setenv("BARNABAS_CONSOLE", "127.0.0.1:9999")
    assert console_of("127.0.0.1:9092", usual) == "127.0.0.1:9999"
    monkeypatch.setenv("BARNABAS_CONSOLE", "")
    assert console_of("127.0.0.1:9092", usual) is None
    monkeypatch.delenv("BARNABAS_CONSOLE")
    assert console_of("127.0.0.1:9092", "http://127.0.0.1:9") is None


def test_plans_are_told_and_cut():
    told = Announcement(PIPELINE, {"out": QueryState("out", "to the topic paid")}, once=True)
    told.plans["out"] = "== Physical Plan ==" + "x" * 100_000
    assert told()["plan"].startswith("out: to the topic paid\n== Physical Plan ==xxx")
    assert len(told()["plan"]) < 10_000


def test_nobody_needs_to_listen():
    Announcer("127.0.0.1:9", Announcement(PIPELINE, {}, once=False)).close()


@pytest.mark.parametrize("address", ["http://example.com:9080", "http://10.0.0.1:9080", "nonsense"])
def test_only_on_this_machine(address):
    with pytest.raises(PipelineError, match="only on this machine"):
        Announcer(address, Announcement(PIPELINE, {}, once=False))
