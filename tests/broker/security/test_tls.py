"""Key stores and trust stores in every form, and contexts that follow their files."""

import contextlib
import ssl
import subprocess

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from structlog.testing import capture_logs

from barnabas.broker.config import BrokerConfig
from barnabas.broker.security.certificates import LOCAL_HOSTS
from barnabas.broker.security.errors import SecurityError
from barnabas.broker.security.tls import Tls
from tests.support import certificates


def tls(settings):
    return Tls(BrokerConfig(settings).for_listener("SSL"), "SSL")


def serial_number(context):
    """Of the certificate that a server with this context presents."""
    mine, yours = (ssl.MemoryBIO(), ssl.MemoryBIO()), (ssl.MemoryBIO(), ssl.MemoryBIO())
    trusting = ssl.create_default_context(cadata=certificates.authority().certificate.decode())
    server = context.wrap_bio(mine[0], mine[1], server_side=True)
    client = trusting.wrap_bio(yours[0], yours[1], server_hostname="localhost")
    for _ in range(4):
        for side, (_, out), (into, _) in ((client, yours, mine), (server, mine, yours)):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
            into.write(out.read())
    return x509.load_der_x509_certificate(client.getpeercert(binary_form=True)).serial_number


def number_of(issued):
    return x509.load_pem_x509_certificate(issued.certificate).serial_number


def encrypted(issued, password):
    key = load_pem_private_key(issued.key, None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password))


def store(issued, password=b"secret"):
    key = load_pem_private_key(issued.key, None)
    own = x509.load_pem_x509_certificate(issued.certificate)
    ca = x509.load_pem_x509_certificate(certificates.authority().certificate)
    return pkcs12.serialize_key_and_certificates(b"own", key, own, [ca], BestAvailableEncryption(password))


def test_pem_in_the_settings():
    issued = certificates.server()
    with_password = {
        "ssl.keystore.key": encrypted(issued, b"secret").decode(),
        "ssl.key.password": "secret",
    }
    for more in ({}, with_password):
        assert serial_number(tls({**certificates.server_settings(), **more}).server_context) == number_of(issued)


def test_pem_files_with_an_encrypted_key(tmp_path):
    issued = certificates.server()
    (tmp_path / "own.pem").write_bytes(issued.certificate + encrypted(issued, b"secret"))
    settings = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "own.pem")}
    assert serial_number(tls({**settings, "ssl.key.password": "secret"}).server_context) == number_of(issued)
    for more in ({}, {"ssl.key.password": "wrong"}):
        with pytest.raises(SecurityError, match=r"ssl\.key\.password is not its password") as refused:
            tls({**settings, **more})
        assert "wrong" not in str(refused.value)


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_pkcs12_whatever_it_is_called(tmp_path, kind):
    issued = certificates.server()
    (tmp_path / "own.p12").write_bytes(store(issued))
    settings = {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": str(tmp_path / "own.p12"),
        "ssl.keystore.password": "secret",
        "ssl.truststore.type": kind,
        "ssl.truststore.location": str(tmp_path / "own.p12"),
        "ssl.truststore.password": "secret",
    }
    found = tls(settings)
    assert serial_number(found.server_context) == number_of(issued)
    assert len(found.client_context.get_ca_certs()) == 1
    with pytest.raises(SecurityError, match=r"not a PKCS12 file, or ssl\.keystore\.password is not its password"):
        tls({**settings, "ssl.keystore.password": "wrong"})


@pytest.mark.java
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_of_keytool(tmp_path, kind):
    path = str(tmp_path / "store")
    common = ["-keystore", path, "-storetype", kind, "-storepass", "secret"]
    subprocess.run(
        ["keytool", "-genkeypair", "-alias", "own", "-dname", "CN=x", "-keyalg", "EC", "-keypass", "secret", *common],
        check=True,
        capture_output=True,
    )
    settings = {"ssl.keystore.location": path, "ssl.keystore.password": "secret"}
    if kind == "PKCS12":
        assert tls(settings).server_context
        return
    with pytest.raises(SecurityError, match="old JKS format; convert it: keytool -importkeystore -srckeystore") as no:
        tls(settings)
    command = str(no.value).partition("convert it: ")[2].split()
    subprocess.run([*command, "-srcstorepass", "secret", "-deststorepass", "secret"], check=True, capture_output=True)
    assert tls({**settings, "ssl.keystore.location": f"{path}.p12"}).server_context


@pytest.mark.java
def test_a_trust_store_of_keytool(tmp_path):
    (tmp_path / "ca.pem").write_bytes(certificates.authority().certificate)
    path = str(tmp_path / "trusted")
    stored = ["-keystore", path, "-storetype", "PKCS12", "-storepass", "secret"]
    subprocess.run(
        ["keytool", "-importcert", "-noprompt", "-alias", "ca", "-file", str(tmp_path / "ca.pem"), *stored],
        check=True,
        capture_output=True,
    )
    issued = certificates.server()
    (tmp_path / "own.pem").write_bytes(issued.key + issued.certificate)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(tmp_path / "own.pem"),
        "ssl.truststore.location": path,
        "ssl.truststore.password": "secret",
    }
    assert len(tls(settings).server_context.get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "TLS needs a key and a certificate"),
        ({"ssl.keystore.location": "/not/there"}, "cannot be read: No such file"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "x"}, "belong together"),
        ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": "y"}, "need ssl.keystore.type=PEM"),
        (certificates.server_settings(**{"ssl.keystore.key": "x"}), "no private key in PEM format"),
        (certificates.server_settings(**{"ssl.keystore.certificate.chain": "x"}), "no certificate in PEM format"),
        (certificates.server_settings(**{"ssl.truststore.certificates": "x"}), "no certificate in PEM format"),
        (certificates.server_settings(**{"ssl.keystore.type": "BCFKS"}), "must be one of JKS, PKCS12, PEM"),
        (certificates.server_settings(**{"ssl.enabled.protocols": "TLSv1.1"}), "TLSv1.2 and TLSv1.3"),
        (
            certificates.server_settings(**{"ssl.keystore.key": certificates.client().key.decode()}),
            "the private key and the certificate cannot be used",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(settings, complaint):
    with pytest.raises(SecurityError, match=complaint) as refused:
        tls(settings)
    assert str(refused.value).startswith("listener SSL: ")
    assert "PRIVATE" not in str(refused.value)


def test_versions_are_those_that_are_enabled():
    context = tls(certificates.server_settings(**{"ssl.enabled.protocols": "TLSv1.3"})).server_context
    assert context.minimum_version == context.maximum_version == ssl.TLSVersion.TLSv1_3


def test_a_certificate_that_is_replaced_on_disk_serves_the_next_client(tmp_path):
    files = certificates.Files(tmp_path)
    found = tls(files.server_settings)
    assert serial_number(found.server_context) == number_of(certificates.server())
    renewed = certificates.authority().issue("broker", LOCAL_HOSTS)
    files.server.write_bytes(renewed.key + renewed.certificate + b"\n")
    assert serial_number(found.server_context) == number_of(renewed)


def test_a_damaged_certificate_does_not_replace_the_one_before(tmp_path):
    files = certificates.Files(tmp_path)
    found = tls(files.server_settings)
    files.server.write_bytes(b"half a file")
    with capture_logs() as logs:
        for _ in range(3):
            assert serial_number(found.server_context) == number_of(certificates.server())
    assert [line["event"] for line in logs] == ["altered TLS settings cannot be used; the previous ones stay in force"]
