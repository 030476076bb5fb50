"""ApiVersions: the first request of every client, sent before it knows which versions the broker supports."""

from __future__ import annotations

from typing import Any, Final

from barnabas.conformance.catalogue import Room
from barnabas.conformance.probe import Probe
from barnabas.conformance.strict_wire import Asked, decode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.encoder import encode
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.frames import framed
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.api_versions import ApiVersionsRequest

room = Room("api-versions", "ApiVersions and what it advertises")

SOFTWARE: Final = ApiVersionsRequest(client_software_name="barnabas-conformance", client_software_version="1.0")
TOO_NEW: Final = 32767


def _ranges(answer: Any) -> dict[int, tuple[int, int]]:
    return {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}


@room.check("first-request", "Protocol guide: Retrieving Supported API versions", "ApiVersions")
def first_request(probe: Probe) -> None:
    """ApiVersions v0 is answered on a new connection before any other request."""
    answer = probe.connect().ask(ApiKey.API_VERSIONS, ApiVersionsRequest(), 0)
    probe.expect_error("ApiVersions v0", answer.error_code)
    probe.require(bool(answer.api_keys), "at least one API", f"{len(answer.api_keys)}")


@room.check("lists-itself", "Protocol guide: Retrieving Supported API versions", "ApiVersions")
def lists_itself(probe: Probe) -> None:
    """The response lists ApiVersions itself, starting at version 0."""
    ranges = _ranges(probe.ask(ApiKey.API_VERSIONS, SOFTWARE))
    probe.expect("the lowest version of ApiVersions", ranges.get(ApiKey.API_VERSIONS, (None, None))[0], 0)


@room.check("each-key-once", "Protocol guide: Retrieving Supported API versions", "ApiVersions")
def each_key_once(probe: Probe) -> None:
    """Every API is listed once, and its lowest version is not above its highest."""
    answer = probe.ask(ApiKey.API_VERSIONS, SOFTWARE)
    keys = [each.api_key for each in answer.api_keys]
    probe.expect("keys listed twice", sorted({key for key in keys if keys.count(key) > 1}), [])
    upside_down = [each.api_key for each in answer.api_keys if not 0 <= each.min_version <= each.max_version]
    probe.expect("keys with an impossible range", upside_down, [])


@room.check("needed-by-every-client", "Protocol guide: The Messages", "ApiVersions")
def needed_by_every_client(probe: Probe) -> None:
    """Produce, Fetch, ListOffsets and Metadata are listed."""
    ranges = _ranges(probe.ask(ApiKey.API_VERSIONS, SOFTWARE))
    for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA):
        probe.require(key in ranges, f"{key.api_name} to be listed", "it is" if key in ranges else "it is not")


@room.check("same-in-every-version", "KIP-35", "ApiVersions")
def same_in_every_version(probe: Probe) -> None:
    """Every version of ApiVersions lists the same APIs with the same ranges."""
    wire = probe.connect()
    first = _ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, 0))
    for version in probe.versions(ApiKey.API_VERSIONS):
        if version:
            again = _ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, version))
            different = sorted(key for key in first.keys() | again.keys() if first.get(key) != again.get(key))
            probe.expect(f"keys that v{version} lists differently from v0", different, [])


def _ask_too_new(probe: Probe, version: int) -> tuple[Any, Any]:
    wire = probe.connect()
    header = RequestHeader(
        request_api_key=ApiKey.API_VERSIONS, request_api_version=version, correlation_id=77, client_id="new"
    )
    wire.send_bytes(framed(encode(header, 2) + encode(SOFTWARE, 3)))
    body = wire.receive(f"a response to ApiVersions v{version}")
    probe.require(body is not None, "a response in version 0", "one came" if body else "the connection was closed")
    return wire, decode(body or b"", Asked(ApiKey.API_VERSIONS, 0, 77))


@room.check("unknown-version", "KIP-511", "ApiVersions")
def unknown_version(probe: Probe) -> None:
    """A version that the broker does not know gets UNSUPPORTED_VERSION in a version 0 response."""
    for version in (probe.target.versions[ApiKey.API_VERSIONS].highest + 1, TOO_NEW):
        _, answer = _ask_too_new(probe, version)
        probe.expect_error(f"ApiVersions v{version}", answer.error_code, ErrorCode.UNSUPPORTED_VERSION)


@room.check("unknown-version-names-range", "KIP-511", "ApiVersions")
def unknown_version_names_range(probe: Probe) -> None:
    """The response to an unknown version lists the supported range of ApiVersions, so that the client can retry."""
    _, answer = _ask_too_new(probe, TOO_NEW)
    highest = probe.target.versions[ApiKey.API_VERSIONS].highest
    probe.expect("the range of ApiVersions", _ranges(answer).get(ApiKey.API_VERSIONS), (0, highest))


@room.check("unknown-version-then-known", "KIP-511", "ApiVersions")
def unknown_version_then_known(probe: Probe) -> None:
    """After UNSUPPORTED_VERSION the client can retry on the same connection."""
    wire, _ = _ask_too_new(probe, TOO_NEW)
    answer = wire.ask(ApiKey.API_VERSIONS, SOFTWARE, probe.version(ApiKey.API_VERSIONS))
    probe.expect_error("ApiVersions in a version that was named", answer.error_code)


@room.check("plain-header", "KIP-511", "ApiVersions 3+")
def plain_header(probe: Probe) -> None:
    """The response header is version 0, without tagged fields, even in flexible versions."""
    answer = probe.connect().ask(ApiKey.API_VERSIONS, SOFTWARE, 3)
    probe.expect_error("ApiVersions v3, read with a plain header", answer.error_code)


@room.check("software-name", "KIP-511", "ApiVersions 3+")
def software_name(probe: Probe) -> None:
    """A client software name or version may have only letters, digits, dots and dashes; others get INVALID_REQUEST."""
    for name, version in (("not a name", "1"), ("", "1"), ("name", ""), ("-name", "1"), ("name", "1.0!")):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = probe.connect().ask(ApiKey.API_VERSIONS, request, probe.version(ApiKey.API_VERSIONS))
        probe.expect_error(f"name {name!r}, version {version!r}", answer.error_code, ErrorCode.INVALID_REQUEST)


@room.check("finalized-within-supported", "KIP-584", "ApiVersions 3+")
def finalized_within_supported(probe: Probe) -> None:
    """Every finalized feature level is within its supported range."""
    answer = probe.ask(ApiKey.API_VERSIONS, SOFTWARE)
    supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    for each in answer.finalized_features:
        lowest, highest = supported.get(each.name, (0, -1))
        probe.require(
            lowest <= each.max_version_level <= highest,
            f"{each.name} to be finalized within its supported range",
            f"level {each.max_version_level}, supported from {lowest} to {highest}",
        )


@room.check("repeatable", "KIP-35", "ApiVersions")
def repeatable(probe: Probe) -> None:
    """ApiVersions can be sent again at any time on a connection, and returns the same list."""
    wire = probe.connect()
    version = probe.version(ApiKey.API_VERSIONS)
    first, second = (_ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, version)) for _ in range(2))
    probe.require(first == second, "the same list both times", "the same" if first == second else "another one")
