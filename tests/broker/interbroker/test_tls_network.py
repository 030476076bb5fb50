"""A broker that connects to another one over TLS looks at its certificate."""

import asyncio

import pytest
from structlog.testing import capture_logs

from barnabas.broker.config import BrokerConfig
from barnabas.broker.interbroker.tls_network import TlsNetwork
from barnabas.broker.network import Network
from barnabas.broker.security.certificates import Authority
from barnabas.broker.security.tls import Tls
from tests.broker.server.test_tls_connection import Serving
from tests.support import certificates

LISTENER = {"listeners": "SSL://127.0.0.1:0", "security.inter.broker.protocol": "SSL"}


def tls(issued=None, **more):
    settings = certificates.server_settings(issued, **{name.replace("_", "."): value for name, value in more.items()})
    return Tls(BrokerConfig({**LISTENER, **settings}).for_listener("SSL"), "SSL")


def issue(hosts=certificates.LOCAL_HOSTS, **validity):
    return certificates.authority().issue("broker", hosts, **validity)


async def connected(other, own):
    """Connect as one broker to another, and hang up."""
    loop = asyncio.get_running_loop()
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=other.server_context)
    async with server:
        port = server.sockets[0].getsockname()[1]
        (await TlsNetwork(Network(loop), own, loop).connect("127.0.0.1", port)).close()


async def test_a_good_certificate():
    await connected(tls(), tls())


@pytest.mark.parametrize(
    ("issued", "reason"),
    [
        (issue(["kafka.example"]), "IP address mismatch"),
        (issue(days=1, since_days=3), "certificate has expired"),
        (certificates.stranger(), "unable to get local issuer certificate"),
    ],
    ids=["another host", "expired", "another authority"],
)
async def test_a_certificate_that_is_refused(issued, reason):
    with pytest.raises(OSError, match=f"the certificate is not accepted: {reason}"):
        await connected(tls(issued), tls())


async def test_host_names_are_not_looked_at_where_that_is_switched_off():
    await connected(tls(issue(["kafka.example"])), tls(ssl_endpoint_identification_algorithm=""))


async def test_the_other_broker_is_told_why_it_was_refused():
    loop = asyncio.get_running_loop()
    own = tls(ssl_truststore_certificates=Authority.create(name="another").certificate.decode())
    with capture_logs() as logs:
        async with Serving() as other:
            with pytest.raises(OSError, match="the certificate is not accepted"):
                await TlsNetwork(Network(loop), own, loop).connect("127.0.0.1", other.port)
            while not logs:  # noqa: ASYNC110, the server logs on its own
                await asyncio.sleep(0.001)
    assert logs[0]["reason"] == "the other side does not accept the certificate of this broker: unknown authority"
