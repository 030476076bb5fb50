"""A setting, and how settings are declared.

Settings are class attributes. The attribute's name is Kafka's name with underscores for dots, and reading it from an
instance gives the typed value:

    class NetworkSettings:
        socket_request_max_bytes = integer(104857600, "…", at_least=1)     # socket.request.max.bytes

    config.socket_request_max_bytes      an int, also for mypy

A setting that nothing reads says so: `integer(30000, "…", effect=NO_EFFECT)`. Remove that
argument when you give it an effect; a test compares the declarations with the code.

A Setting is a descriptor without `__set__`, and an instance keeps its values in its own `__dict__`. Python looks there
first, so reading a setting costs what reading any attribute costs, and `__get__` runs only for the class.
"""

from enum import Enum
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast, overload

from barnabas.broker.config.errors import InvalidConfigError
from barnabas.broker.config.values import (
    Boolean,
    ConfigType,
    DecimalNumber,
    Kind,
    Pairs,
    Strings,
    Text,
    TextList,
    WholeNumber,
)

T = TypeVar("T")
# The first constraint that fits is taken: integer(3) is a Setting[int], integer(None) a Setting[int | None].
IntT = TypeVar("IntT", int, int | None)
StringT = TypeVar("StringT", str, str | None)
StringsT = TypeVar("StringsT", Strings, Strings | None)


class UpdateMode(Enum):
    """Whether a broker's setting may change at run-time, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


READ_ONLY, PER_BROKER, CLUSTER_WIDE = UpdateMode.READ_ONLY, UpdateMode.PER_BROKER, UpdateMode.CLUSTER_WIDE


class UnlikeKafka(NamedTuple):
    """Kafka's default, where the one here differs on purpose, and the reason."""

    kafka_default: object
    why: str


class Effect(NamedTuple):
    """What happens when a setting is set to something other than what the broker does anyway."""

    works: bool  # otherwise nothing reads it
    value: object = None  # what the broker does without reading it; None: what the default says
    refusal: str | None = None  # why it must not be ignored, and what to do instead; None: a warning is enough


WORKS = Effect(works=True)
NO_EFFECT = Effect(works=False)


def always(value: object) -> Effect:
    """No effect: whatever is set, and whatever Kafka's default says, the broker behaves as if it were this value."""
    return Effect(works=False, value=value)


def refused(why: str) -> Effect:
    """No effect, and ignoring it would weaken security or lose data."""
    return Effect(works=False, refusal=why)


class Setting(Generic[T]):
    """The default is Kafka's own unless `unlike_kafka` gives the reason why not.

    An internal setting is one that Kafka has for its own tests and does not describe to clients.
    """

    __slots__ = ("attribute", "default", "doc", "effect", "internal", "kind", "name", "unlike_kafka", "update_mode")

    name: str
    attribute: str

    def __init__(
        self,
        kind: Kind[Any],
        default: T,
        doc: str,
        update_mode: UpdateMode = READ_ONLY,
        unlike_kafka: UnlikeKafka | None = None,
        internal: bool = False,
        effect: Effect = WORKS,
    ) -> None:
        self.kind = kind
        self.default = default
        self.doc = doc
        self.update_mode = update_mode
        self.unlike_kafka = unlike_kafka
        self.internal = internal
        self.effect = effect

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.name = attribute.replace("_", ".")

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        return self

    @property
    def sensitive(self) -> bool:
        return self.kind.type is ConfigType.PASSWORD

    @property
    def documentation(self) -> str:
        return self.doc if self.effect.works else f"{self.doc} It has no effect in Barnabas."

    def is_ignored(self, value: T) -> bool:
        """Whether the broker does something other than what this value says."""
        if self.effect.works:
            return False
        return value != (self.default if self.effect.value is None else self.effect.value)

    def parse(self, text: str, name: str | None = None) -> T:
        """The typed value of a text, or InvalidConfigError, which calls the setting `name` if that is given."""
        try:
            return cast(T, self.kind.read(text.strip()))
        except ValueError:
            raise InvalidConfigError(f"{name or self.name} is {text!r}, but it must be {self.kind.expected}") from None

    def show(self, value: T) -> str | None:
        """The text of a typed value, as Kafka writes it."""
        return None if value is None else self.kind.show(value)


def boolean(default: bool, doc: str, *, update_mode: UpdateMode = READ_ONLY, effect: Effect = WORKS) -> Setting[bool]:
    return Setting(Boolean(), default, doc, update_mode, effect=effect)


def integer(
    default: IntT,
    doc: str,
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    besides: int | None = None,
    update_mode: UpdateMode = READ_ONLY,
    unlike_kafka: UnlikeKafka | None = None,
    internal: bool = False,
    effect: Effect = WORKS,
) -> Setting[IntT]:
    kind = WholeNumber(ConfigType.INT, at_least, at_most, besides)
    return Setting(kind, default, doc, update_mode, unlike_kafka, internal, effect)


def long(
    default: IntT,
    doc: str,
    *,
    at_least: int | None = None,
    update_mode: UpdateMode = READ_ONLY,
    internal: bool = False,
    effect: Effect = WORKS,
) -> Setting[IntT]:
    return Setting(WholeNumber(ConfigType.LONG, at_least, None), default, doc, update_mode, None, internal, effect)


def short(
    default: int, doc: str, *, at_least: int | None = None, unlike_kafka: UnlikeKafka | None = None
) -> Setting[int]:
    return Setting(WholeNumber(ConfigType.SHORT, at_least, None), default, doc, READ_ONLY, unlike_kafka)


def double(
    default: float,
    doc: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    update_mode: UpdateMode = READ_ONLY,
    effect: Effect = WORKS,
) -> Setting[float]:
    return Setting(DecimalNumber(at_least, at_most), default, doc, update_mode, effect=effect)


def string(
    default: StringT,
    doc: str,
    *,
    one_of: Strings = (),
    ignore_case: bool = False,
    update_mode: UpdateMode = READ_ONLY,
    internal: bool = False,
    effect: Effect = WORKS,
) -> Setting[StringT]:
    kind = Text(ConfigType.STRING, one_of, ignore_case)
    return Setting(kind, default, doc, update_mode, internal=internal, effect=effect)


def strings(
    default: StringsT,
    doc: str,
    *,
    one_of: Strings = (),
    pattern: str = "",
    form: str = "",
    may_be_empty: bool = True,
    update_mode: UpdateMode = READ_ONLY,
    unlike_kafka: UnlikeKafka | None = None,
    effect: Effect = WORKS,
) -> Setting[StringsT]:
    kind = TextList(one_of, pattern, form, may_be_empty)
    return Setting(kind, default, doc, update_mode, unlike_kafka, effect=effect)


def password(
    doc: str, *, update_mode: UpdateMode = READ_ONLY, internal: bool = False, effect: Effect = WORKS
) -> Setting[str | None]:
    return Setting(Text(ConfigType.PASSWORD), None, doc, update_mode, internal=internal, effect=effect)


def pairs(
    default: dict[str, T], doc: str, *, value_kind: Kind[T], update_mode: UpdateMode = READ_ONLY
) -> Setting[dict[str, T]]:
    return Setting(Pairs(value_kind), default, doc, update_mode)


def settings_of(owner: type) -> dict[str, Setting[Any]]:
    """All settings that a class and its bases declare, by Kafka's name."""
    found = {}
    for base in reversed(owner.__mro__):
        for value in vars(base).values():
            if isinstance(value, Setting):
                found[value.name] = value
    return found
