import asyncio
import json

import pytest

from barnabas.broker.testing.http import BadRequest, Call, ControlError, HttpServer, Route, Text

TOKEN = "secret"
AUTHORISED = f"Authorization: Bearer {TOKEN}"


async def echo(call: Call):
    return {"params": dict(call.params), "query": dict(call.query), "json": call.json()}


async def nothing(call: Call):
    return None


async def refuse(call: Call):
    raise BadRequest("no such colour", "colour")


async def crash(call: Call):
    return 1 // 0


async def strict_fields(call: Call):
    return call.fields("known")


async def text(call: Call):
    return Text(b"a,b\n", "text/csv")


ended = asyncio.Event()


async def stream(call: Call):
    async def parts():
        try:
            yield b'{"n":1}\n'
            yield b'{"n":2}\n'
            if "forever" in call.query:
                await asyncio.Event().wait()
        finally:
            ended.set()

    return parts()


ROUTES = [
    Route("GET", "/echo/{name}", echo),
    Route("POST", "/echo/{name}", echo),
    Route("POST", "/nothing", nothing),
    Route("GET", "/refuse", refuse),
    Route("GET", "/crash", crash),
    Route("POST", "/fields", strict_fields),
    Route("GET", "/text", text),
    Route("GET", "/stream", stream),
]


@pytest.fixture
async def connect():
    server = HttpServer(ROUTES, TOKEN)
    host, port = await server.start("127.0.0.1", 0)
    yield lambda: asyncio.open_connection(host, port)
    await server.stop()


def request(line, *headers, body=b""):
    lines = [f"{line} HTTP/1.1", "Host: here", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split()[1]), headers, body


@pytest.fixture
def ask(connect):
    async def ask(*arguments, body=b""):
        reader, writer = await connect()
        writer.write(request(*arguments, body=body))
        status, headers, data = await answer(reader)
        writer.close()
        return status, json.loads(data) if data and "json" in headers["content-type"] else data

    return ask


async def test_a_route_gets_what_the_request_says(ask):
    status, told = await ask("POST /echo/a%20b?x=1&y=", AUTHORISED, body=b'{"z": [1]}')
    assert status == 200
    assert told == {"params": {"name": "a b"}, "query": {"x": "1", "y": ""}, "json": {"z": [1]}}


async def test_no_answer_is_204(ask):
    assert await ask("POST /nothing", AUTHORISED) == (204, b"")


async def test_an_answer_may_be_text(ask):
    assert await ask("GET /text", AUTHORISED) == (200, b"a,b\n")


@pytest.mark.parametrize(
    "header", ["X: y", "Authorization: Bearer wrong", "Authorization: Basic secret", "Authorization:"]
)
async def test_without_the_token_nothing_is_revealed(ask, header):
    status, told = await ask("GET /echo/a", header)
    assert status == 401
    assert "Authorization" in told["error"]


async def test_a_refusal_names_the_field(ask):
    assert await ask("GET /refuse", AUTHORISED) == (400, {"error": "no such colour", "field": "colour"})


@pytest.mark.parametrize(
    ("line", "body", "status"),
    [
        ("GET /nowhere", b"", 404),
        ("GET //[", b"", 400),
        ("DELETE /echo/a", b"", 405),
        ("POST /echo/a", b"{", 400),
        ("POST /fields", b'{"unknown": 1}', 400),
        ("POST /fields", b"[]", 400),
    ],
)
async def test_an_invalid_request_is_answered_with_an_error(ask, line, body, status):
    told = await ask(line, AUTHORISED, body=body)
    assert told[0] == status
    assert told[1]["error"]


async def test_a_handler_that_fails_is_an_answer_too(ask):
    status, told = await ask("GET /crash", AUTHORISED)
    assert (status, "ZeroDivisionError" in told["error"]) == (500, True)


async def test_a_connection_is_good_for_many_requests(connect):
    reader, writer = await connect()
    for number in range(3):
        writer.write(request(f"GET /echo/{number}", AUTHORISED))
        status, _, data = await answer(reader)
        assert (status, json.loads(data)["params"]) == (200, {"name": str(number)})
    # Also after a refusal, and with two of them sent together.
    writer.write(request("GET /refuse", AUTHORISED) + request("GET /echo/last", AUTHORISED))
    assert (await answer(reader))[0] == 400
    assert (await answer(reader))[0] == 200
    writer.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (request("GET /echo/a", AUTHORISED, "X: " + "x" * 20_000), 431),
        (request("POST /echo/a", AUTHORISED, "Content-Length: 99999999999"), 413),
        (request("POST /echo/a", AUTHORISED, "Content-Length: -1"), 400),
        (request("POST /echo/a", AUTHORISED, "Transfer-Encoding: chunked"), 411),
    ],
)
async def test_oversized_or_invalid_requests_end_the_connection(connect, sent, status):
    reader, writer = await connect()
    writer.write(sent)
    assert (await answer(reader))[0] == status
    assert await reader.read() == b""
    writer.close()


async def test_a_client_that_goes_away_in_the_middle_costs_nothing(connect, ask):
    _, writer = await connect()
    writer.write(request("POST /echo/a", AUTHORISED, "Content-Length: 100"))
    writer.close()
    assert (await ask("GET /echo/a", AUTHORISED))[0] == 200


async def test_a_client_that_expects_100_continue_gets_it(connect):
    reader, writer = await connect()
    writer.write(request("POST /echo/a", AUTHORISED, "Expect: 100-continue", "Content-Length: 2"))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    writer.write(b"{}")
    assert (await answer(reader))[0] == 200
    writer.close()


async def test_a_stream_comes_part_by_part(connect):
    reader, writer = await connect()
    writer.write(request("GET /stream", AUTHORISED))
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"Transfer-Encoding: chunked" in head
    assert await reader.read() == b'8\r\n{"n":1}\n\r\n8\r\n{"n":2}\n\r\n0\r\n\r\n'
    writer.close()


async def test_a_stream_ends_when_its_reader_goes_away(connect):
    ended.clear()
    reader, writer = await connect()
    writer.write(request("GET /stream?forever", AUTHORISED))
    await reader.readuntil(b'{"n":2}\n')
    assert not ended.is_set()
    writer.close()
    await asyncio.wait_for(ended.wait(), 30)


async def test_stopping_ends_what_is_open():
    server = HttpServer(ROUTES, TOKEN)
    host, port = await server.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(host, port)
    await server.stop()
    assert await reader.read() == b""
    writer.close()


def test_errors_carry_their_status():
    assert (ControlError(409, "no").status, BadRequest("no").status) == (409, 400)
