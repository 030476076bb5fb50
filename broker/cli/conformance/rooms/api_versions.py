"""ApiVersions: the first question of every client, asked before it knows what the broker speaks."""

from __future__ import annotations

from typing import Any, Final

from broker.cli.conformance.catalogue import Room
from broker.cli.conformance.probe import Probe
from broker.cli.conformance.wire import Asked, decode, framed
from protocol.api import ApiKey
from protocol.encoder import encode
from protocol.errors import ErrorCode
from protocol.headers import RequestHeader
from protocol.messages.api_versions import ApiVersionsRequest

room = Room("api-versions", "ApiVersions, and what it promises")

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
    """The answer lists ApiVersions itself, from version 0 on."""
    ranges = _ranges(probe.ask(ApiKey.API_VERSIONS, SOFTWARE))
    probe.expect("the lowest version of ApiVersions", ranges.get(ApiKey.API_VERSIONS, (None, None))[0], 0)


@room.check("each-key-once", "Protocol guide: Retrieving Supported API versions", "ApiVersions")
def each_key_once(probe: Probe) -> None:
    """Every API is listed once, with a lowest version that is not above its highest."""
    answer = probe.ask(ApiKey.API_VERSIONS, SOFTWARE)
    keys = [each.api_key for each in answer.api_keys]
    probe.expect("keys listed twice", sorted({key for key in keys if keys.count(key) > 1}), [])
    upside_down = [each.api_key for each in answer.api_keys if not 0 <= each.min_version <= each.max_version]
    probe.expect("keys with an impossible range", upside_down, [])


@room.check("needed-by-every-client", "Protocol guide: The Messages", "ApiVersions")
def needed_by_every_client(probe: Probe) -> None:
    """Produce, Fetch, ListOffsets and Metadata are among the APIs."""
    ranges = _ranges(probe.ask(ApiKey.API_VERSIONS, SOFTWARE))
    for key in (ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA):
        probe.require(key in ranges, f"{key.api_name} to be listed", "it is" if key in ranges else "it is not")


@room.check("same-in-every-version", "KIP-35", "ApiVersions")
def same_in_every_version(probe: Probe) -> None:
    """Every version of ApiVersions lists the same APIs in the same ranges."""
    wire = probe.connect()
    first = _ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, 0))
    for version in probe.versions(ApiKey.API_VERSIONS):
        if version:
            again = _ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, version))
            different = sorted(key for key in first.keys() | again.keys() if first.get(key) != again.get(key))
            probe.expect(f"keys that v{version} lists otherwise than v0", different, [])


def _ask_too_new(probe: Probe, version: int) -> tuple[Any, Any]:
    wire = probe.connect()
    header = RequestHeader(
        request_api_key=ApiKey.API_VERSIONS, request_api_version=version, correlation_id=77, client_id="new"
    )
    wire.send_bytes(framed(encode(header, 2) + encode(SOFTWARE, 3)))
    body = wire.receive(f"an answer to ApiVersions v{version}")
    probe.require(body is not None, "an answer in version 0", "one came" if body else "the connection was closed")
    return wire, decode(body or b"", Asked(ApiKey.API_VERSIONS, 0, 77))


@room.check("unknown-version", "KIP-511", "ApiVersions")
def unknown_version(probe: Probe) -> None:
    """A version that the broker does not know is answered in version 0 with UNSUPPORTED_VERSION."""
    for version in (probe.target.versions[ApiKey.API_VERSIONS].highest + 1, TOO_NEW):
        _, answer = _ask_too_new(probe, version)
        probe.expect_error(f"ApiVersions v{version}", answer.error_code, ErrorCode.UNSUPPORTED_VERSION)


@room.check("unknown-version-names-range", "KIP-511", "ApiVersions")
def unknown_version_names_range(probe: Probe) -> None:
    """The answer to an unknown version names the range of ApiVersions, so that the client can ask again."""
    _, answer = _ask_too_new(probe, TOO_NEW)
    highest = probe.target.versions[ApiKey.API_VERSIONS].highest
    probe.expect("the range of ApiVersions", _ranges(answer).get(ApiKey.API_VERSIONS), (0, highest))


@room.check("unknown-version-then-known", "KIP-511", "ApiVersions")
def unknown_version_then_known(probe: Probe) -> None:
    """After UNSUPPORTED_VERSION the client asks again on the same connection, and is answered."""
    wire, _ = _ask_too_new(probe, TOO_NEW)
    answer = wire.ask(ApiKey.API_VERSIONS, SOFTWARE, probe.version(ApiKey.API_VERSIONS))
    probe.expect_error("ApiVersions in a version that was named", answer.error_code)


@room.check("plain-header", "KIP-511", "ApiVersions 3+")
def plain_header(probe: Probe) -> None:
    """The answer's header has no tagged fields even in flexible versions: it is version 0 of the header."""
    answer = probe.connect().ask(ApiKey.API_VERSIONS, SOFTWARE, 3)
    probe.expect_error("ApiVersions v3, read with a plain header", answer.error_code)


@room.check("software-name", "KIP-511", "ApiVersions 3+")
def software_name(probe: Probe) -> None:
    """A client software name or version of other than letters, digits, dots and dashes gets INVALID_REQUEST."""
    for name, version in (("not a name", "1"), ("", "1"), ("name", ""), ("-name", "1"), ("name", "1.0!")):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        answer = probe.connect().ask(ApiKey.API_VERSIONS, request, probe.version(ApiKey.API_VERSIONS))
        probe.expect_error(f"name {name!r}, version {version!r}", answer.error_code, ErrorCode.INVALID_REQUEST)


@room.check("finalized-within-supported", "KIP-584", "ApiVersions 3+")
def finalized_within_supported(probe: Probe) -> None:
    """Every finalized feature lies within the range in which it is supported."""
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
    """ApiVersions may be asked again at any time on a connection, and says the same."""
    wire = probe.connect()
    version = probe.version(ApiKey.API_VERSIONS)
    first, second = (_ranges(wire.ask(ApiKey.API_VERSIONS, SOFTWARE, version)) for _ in range(2))
    probe.require(first == second, "the same list both times", "the same" if first == second else "another one")
