"""How a message is declared.

A message is a class with one annotated attribute per field, in wire order:

    class PartitionProduceData(Struct):
        index: Int32 = field("0+")
        records: Records | None = field("0+", nullable="0+")

The annotation is the Python type that editors and mypy see, and carries the wire type. `field` declares the versions in
which the field exists, those in which it may be null, and its default and tag if any. Instances have slots and a
keyword-only constructor. barnabas.protocol.decoder and barnabas.protocol.encoder turn a declaration into code, once
per version.

If a version lacks a field, the encoder omits it and the decoder sets it to its default.
"""

from __future__ import annotations

import typing
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Final, Protocol, dataclass_transform

from barnabas.protocol.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class WireType:
    """A scalar. `code` is its struct code if it has a fixed size; other types begin with their length."""

    name: str
    code: str = ""
    size: int = 0
    zero: Any = 0


class Splice(Protocol):
    """Records that the encoder does not copy. It records their position, and the server sends them from their file."""

    @property
    def size(self) -> int: ...


STRING: Final = WireType("string", zero="")
BYTES: Final = WireType("bytes", zero=b"")
RECORDS: Final = WireType("records", zero=b"")

Bool = Annotated[bool, WireType("bool", "?", 1, zero=False)]
Int8 = Annotated[int, WireType("int8", "b", 1)]
Int16 = Annotated[int, WireType("int16", "h", 2)]
Int32 = Annotated[int, WireType("int32", "i", 4)]
Int64 = Annotated[int, WireType("int64", "q", 8)]
UInt16 = Annotated[int, WireType("uint16", "H", 2)]
UInt32 = Annotated[int, WireType("uint32", "I", 4)]
Float64 = Annotated[float, WireType("float64", "d", 8, zero=0.0)]
Uuid = Annotated[bytes, WireType("uuid", "16s", 16, zero=bytes(16))]
String = Annotated[str, STRING]
Bytes = Annotated[bytes, BYTES]
# Decoded records are a view into the request's frame, valid until its buffer is reused.
Records = Annotated[bytes | bytearray | memoryview | Splice, RECORDS]

ZERO_UUID: Final = bytes(16)


@dataclass(frozen=True, slots=True)
class Versions:
    """An inclusive range of versions, written `0-3`, `4`, `2+` or `none`."""

    lowest: int
    highest: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return NO_VERSIONS
        if text.endswith("+"):
            return cls(int(text[:-1]), 32767)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __iter__(self) -> typing.Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))


NO_VERSIONS: Final = Versions(0, -1)
_REQUIRED: Final = object()


class Field:
    """What `field` declared. The wire type is read from the annotation when the first codec is generated."""

    __slots__ = ("compactable", "default", "nullable", "required", "tag", "versions")

    def __init__(self, versions: str, default: Any, nullable: str, tag: int | None, compactable: bool) -> None:
        self.versions = Versions.parse(versions)
        self.nullable = Versions.parse(nullable)
        self.required = default is _REQUIRED
        self.default = None if self.required else default
        self.tag = tag
        self.compactable = compactable


def field(
    versions: str,
    *,
    default: Any = _REQUIRED,
    nullable: str = "none",
    tag: int | None = None,
    compactable: bool = True,
) -> Any:
    """Declare a field. A list's default is a new empty list, written `default=()`.

    A tagged struct defaults to None: it is absent, and readers assume the struct's own defaults. Without a default,
    it is always written, as null too.
    """
    return Field(versions, default, nullable, tag, compactable)


def _first_init(self: Struct, **values: Any) -> None:
    """A placeholder for every constructor until the class is first used, so that importing messages stays cheap."""
    struct = type(self)
    struct.__init__ = _make_init(struct)  # type: ignore[method-assign]
    struct.__init__(self, **values)


def _make_init(struct: StructType) -> Any:
    """Generate `def __init__(self, *, a, b=0)`, the fastest kind of constructor."""
    parameters, body, names = [], [], {}
    for name, spec in struct.fields.items():
        if spec.required:
            parameters.append(name)
        else:
            names[f"default_{name}"] = spec.default
            parameters.append(f"{name}=default_{name}")
        fresh_list = not spec.required and spec.default == ()
        body.append(f"    self.{name} = {f'[] if {name} is default_{name} else {name}' if fresh_list else name}")
    star = "*, " if parameters else ""
    source = f"def __init__(self, {star}{', '.join(parameters)}):\n" + ("\n".join(body) or "    pass")
    exec(source, names)
    return names["__init__"]


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
class StructType(type):
    """Collects a class's fields into `fields`, makes slots of them, and generates the constructor on its first call."""

    fields: dict[str, Field]

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> StructType:
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key in fields:
            del namespace[key]
        namespace["__slots__"] = tuple(fields)
        namespace["__init__"] = _first_init
        cls = super().__new__(mcs, name, bases, namespace, **options)
        cls.fields = fields
        return cls


class Struct(metaclass=StructType):
    """A group of fields: a message, or a part of one."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(getattr(self, n) == getattr(other, n) for n in type(self).fields)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in type(self).fields)})"


class Message(Struct):
    """A top-level struct, which knows its versions."""

    versions: ClassVar[Versions]
    flexible: ClassVar[Versions]

    def __init_subclass__(cls, *, versions: str = "none", flexible: str = "none") -> None:
        cls.versions = Versions.parse(versions)
        cls.flexible = Versions.parse(flexible)

    @classmethod
    def check_version(cls, version: int) -> None:
        if version not in cls.versions:
            raise ProtocolError(f"{cls.__name__} has no version {version}")


@cache
def wire_types(struct: StructType) -> dict[str, Any]:
    """Each field's annotation, resolved: a WireType, a StructType, or a one-element list of either.

    Remembered, because annotations take longer to resolve than a codec takes to write, and every version needs them.
    """
    hints = typing.get_type_hints(struct, include_extras=True)
    return {name: _wire_type(hints[name]) for name in struct.fields}


def _wire_type(hint: Any) -> Any:
    if isinstance(hint, StructType):
        return hint
    origin = typing.get_origin(hint)
    if origin is Annotated:
        return hint.__metadata__[0]
    if origin is list:
        return [_wire_type(typing.get_args(hint)[0])]
    inner = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    if len(inner) == 1:  # X | None
        return _wire_type(inner[0])
    raise TypeError(f"{hint} has no wire type")
