"""Certificates for tests: one authority per process, and what it has issued, as files and as settings."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from barnabas.broker.security.certificates import LOCAL_HOSTS, Authority, Issued


@cache
def authority() -> Authority:
    return Authority.create()


@cache
def server() -> Issued:
    return authority().issue("broker", LOCAL_HOSTS)


@cache
def client(name: str = "alice", unit: str = "people") -> Issued:
    return authority().issue(name, OU=unit)


@cache
def stranger() -> Issued:
    """A client whose authority nobody trusts."""
    return Authority.create(name="somebody else").issue("mallory")


def server_settings(issued: Issued | None = None, **more: str) -> dict[str, str]:
    """The TLS settings of a broker, as PEM in the settings themselves."""
    issued = issued or server()
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.key": issued.key.decode(),
        "ssl.keystore.certificate.chain": issued.certificate.decode(),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": authority().certificate.decode(),
        **more,
    }


class Files:
    """The same as files below a folder."""

    def __init__(self, folder: Path) -> None:
        self.ca = _written(folder / "ca.pem", authority().certificate)
        self.server = _written(folder / "server.pem", server().key + server().certificate)
        self.client = _written(folder / "client.pem", client().key + client().certificate)
        self.client_key = _written(folder / "client-key.pem", client().key)
        self.client_certificate = _written(folder / "client-certificate.pem", client().certificate)

    @property
    def server_settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.ca),
        }


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
