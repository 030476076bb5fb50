import asyncio
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from structlog.testing import capture_logs

from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.sasl.jwks import FileKeys, UrlKeys, keys_at
from tests.broker.security.sasl.test_oauthbearer import ELLIPTIC, RSA, key_set


def test_a_file_that_is_replaced_is_read_again(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(key_set(one=RSA))
    keys = FileKeys(str(path), "the.setting")
    assert keys.find("one")
    assert keys.find("two") is None
    path.write_text(key_set(one=RSA, two=ELLIPTIC))
    assert keys.find("two")
    path.write_text("half a fi")
    with capture_logs() as logs:
        assert keys.find("two")
        assert keys.find("two")
    assert len(logs) == 1


def test_the_only_key_needs_no_name(tmp_path):
    path = tmp_path / "keys.json"
    path.write_text(key_set(one=RSA))
    assert FileKeys(str(path), "the.setting").find(None)
    path.write_text(key_set(one=RSA, two=ELLIPTIC))
    assert FileKeys(str(path), "the.setting").find(None) is None


@pytest.mark.parametrize("content", [None, "", "[]", "{}", '{"keys": []}', '{"keys": [1]}'])
def test_a_file_without_keys_is_refused(tmp_path, content):
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SecurityError, match=r"the\.setting=.*keys\.json cannot be used"):
        FileKeys(str(path), "the.setting")


def test_other_schemes_are_refused():
    with pytest.raises(SecurityError, match="must begin with file://"):
        keys_at("ftp://x", "the.setting", 1000, lambda: 0, None)


class Issuer(ThreadingHTTPServer):
    """Serves a set of keys that a test may change."""

    def __init__(self):
        self.content = key_set(one=RSA)
        self.served = 0

        class Handler(BaseHTTPRequestHandler):
            def do_GET(handler):
                self.served += 1
                handler.send_response(200 if self.content else 500)
                handler.end_headers()
                handler.wfile.write(self.content.encode())

            def log_message(handler, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def issuer():
    with Issuer() as issuer:
        yield issuer
        issuer.shutdown()


class AwaitedKeys(UrlKeys):
    """Reports when an answer has arrived."""

    def __init__(self, *args):
        self.arrived = asyncio.Event()
        super().__init__(*args)

    def _arrived(self, fetching):
        super()._arrived(fetching)
        self.arrived.set()

    async def answer(self):
        await self.arrived.wait()
        self.arrived.clear()


async def test_a_url_is_fetched_in_the_background_and_again(issuer):
    now_ms = 1_000_000
    url = f"http://127.0.0.1:{issuer.server_port}/keys"
    keys = AwaitedKeys(url, 3_600_000, lambda: now_ms, asyncio.get_running_loop())
    assert keys.find("one") is None  # not there yet
    await keys.answer()
    assert keys.find("one")
    issuer.content = key_set(two=ELLIPTIC)
    for _ in range(10):
        assert keys.find("two") is None
    assert issuer.served == 1  # an unknown key is no reason to fetch at once
    now_ms += 10_000
    assert keys.find("two") is None
    await keys.answer()
    assert keys.find("two")
    issuer.content = ""
    now_ms += 3_600_000
    with capture_logs() as logs:
        assert keys.find("two")
        await keys.answer()
    assert keys.find("two")
    assert [line["event"] for line in logs] == ["keys cannot be fetched; the previous ones stay in use"]
