"""The kinds of values that settings have: how each is parsed, written and described in words.

Numbers are parsed strictly: an optional sign and ASCII digits, without underscores, hexadecimal digits or units.
"""

import re
from abc import ABC, abstractmethod
from enum import IntEnum
from typing import Generic, TypeVar

Strings = tuple[str, ...]
T = TypeVar("T")

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
SHORT_MAX = 2**15 - 1

_INFINITY = float("inf")
_DIGITS = frozenset("0123456789")
_DECIMAL_CHARACTERS = _DIGITS | set("+-.eE")  # float() also accepts underscores, nan and inf


class ConfigType(IntEnum):
    """A setting's type, with its number in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


_LARGEST = {ConfigType.SHORT: SHORT_MAX, ConfigType.INT: INT_MAX, ConfigType.LONG: LONG_MAX}


class Kind(ABC, Generic[T]):
    """A type of value, and which values of it are allowed."""

    __slots__ = ("type",)

    def __init__(self, type: ConfigType) -> None:
        self.type = type

    @abstractmethod
    def read(self, text: str) -> T:
        """The value of a text without surrounding blanks; ValueError if it is not allowed."""

    def is_valid(self, text: str) -> bool:
        try:
            self.read(text)
        except ValueError:
            return False
        return True

    @abstractmethod
    def show(self, value: T) -> str:
        """The value as Kafka writes it."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a value must be, in words that follow "it must be"."""


class Boolean(Kind[bool]):
    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(ConfigType.BOOLEAN)

    def read(self, text: str) -> bool:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ValueError
        return lowered == "true"

    def show(self, value: bool) -> str:
        return "true" if value else "false"

    @property
    def expected(self) -> str:
        return "true or false"


class WholeNumber(Kind[int]):
    """INT, LONG or SHORT, in a range; `besides` is one more allowed number."""

    __slots__ = ("at_least", "at_most", "besides")

    def __init__(self, type: ConfigType, at_least: int | None, at_most: int | None, besides: int | None = None) -> None:
        super().__init__(type)
        largest = _LARGEST[type]
        self.at_least = -largest - 1 if at_least is None else at_least
        self.at_most = largest if at_most is None else at_most
        self.besides = besides

    def read(self, text: str) -> int:
        if not _DIGITS.issuperset(text[1:] if text[:1] in ("+", "-") else text):
            raise ValueError
        value = int(text)
        if not self.at_least <= value <= self.at_most and value != self.besides:
            raise ValueError
        return value

    def show(self, value: int) -> str:
        return str(value)

    @property
    def expected(self) -> str:
        words = f"a whole number from {self.at_least} to {self.at_most}"
        return words if self.besides is None else f"{words}, or {self.besides}"


class DecimalNumber(Kind[float]):
    __slots__ = ("at_least", "at_most")

    def __init__(self, at_least: float | None, at_most: float | None) -> None:
        super().__init__(ConfigType.DOUBLE)
        self.at_least = at_least
        self.at_most = at_most

    def read(self, text: str) -> float:
        if not _DECIMAL_CHARACTERS.issuperset(text):
            raise ValueError
        value = float(text)
        if abs(value) == _INFINITY:  # too large for a double
            raise ValueError
        if (self.at_least is not None and value < self.at_least) or (self.at_most is not None and value > self.at_most):
            raise ValueError
        return value

    def show(self, value: float) -> str:
        """The text that Java prints for a double: 0.5, but 1.0E7 and 1.0E-5."""
        if value == 0 or 1e-3 <= abs(value) < 1e7:
            return repr(value)
        shortest = next(text for digits in range(1, 18) if float(text := f"{value:.{digits}e}") == value)
        digits_shown, _, exponent = shortest.partition("e")
        return f"{digits_shown}E{int(exponent)}"

    @property
    def expected(self) -> str:
        if self.at_least is None or self.at_most is None:
            return "a number"
        return f"a number from {self.at_least} to {self.at_most}"


class Text(Kind[str]):
    """STRING or PASSWORD; `one_of` restricts it to some words."""

    __slots__ = ("ignore_case", "one_of")

    def __init__(self, type: ConfigType, one_of: Strings = (), ignore_case: bool = False) -> None:
        super().__init__(type)
        self.one_of = one_of
        self.ignore_case = ignore_case

    def read(self, text: str) -> str:
        if self.one_of:
            allowed = [word.lower() for word in self.one_of] if self.ignore_case else self.one_of
            if (text.lower() if self.ignore_case else text) not in allowed:
                raise ValueError
        return text

    def show(self, value: str) -> str:
        return value

    @property
    def expected(self) -> str:
        return f"one of {', '.join(self.one_of)}" if self.one_of else "a text"


class TextList(Kind[Strings]):
    """A list separated by commas, without empty items; repeated items count once.

    The whole list must match `pattern`, which `form` describes in words.
    """

    __slots__ = ("form", "may_be_empty", "one_of", "pattern")

    def __init__(self, one_of: Strings = (), pattern: str = "", form: str = "", may_be_empty: bool = True) -> None:
        super().__init__(ConfigType.LIST)
        self.one_of = one_of
        self.pattern = pattern
        self.form = form
        self.may_be_empty = may_be_empty

    def read(self, text: str) -> Strings:
        items = tuple(dict.fromkeys(item.strip() for item in text.split(","))) if text else ()
        if "" in items or not (items or self.may_be_empty):
            raise ValueError
        if self.one_of and not set(items) <= set(self.one_of):
            raise ValueError
        if self.pattern and not re.fullmatch(self.pattern, ",".join(items)):
            raise ValueError
        return items

    def show(self, value: Strings) -> str:
        return ",".join(value)

    @property
    def expected(self) -> str:
        words = "a list separated by commas" if self.may_be_empty else "a list of one or more items separated by commas"
        if self.one_of:
            words += f", each one of {', '.join(self.one_of)}"
        if self.pattern:
            words += f", as {self.form}"
        return words


class Pairs(Kind[dict[str, T]]):
    """`a:1,b:2`, a STRING in Kafka. A key may contain colons, like an IPv6 address."""

    __slots__ = ("value_kind",)

    def __init__(self, value_kind: Kind[T]) -> None:
        super().__init__(ConfigType.STRING)
        self.value_kind = value_kind

    def read(self, text: str) -> dict[str, T]:
        pairs = {}
        for item in text.split(",") if text else ():
            key, _, value = item.rpartition(":")
            key = key.strip()
            if not key or key in pairs:
                raise ValueError
            pairs[key] = self.value_kind.read(value.strip())
        return pairs

    def show(self, value: dict[str, T]) -> str:
        return ",".join(f"{key}:{self.value_kind.show(item)}" for key, item in value.items())

    @property
    def expected(self) -> str:
        value = self.value_kind.expected
        return f"a list of key:value pairs separated by commas, without repeated keys, each value {value}"


def principals(text: str) -> list[str]:
    """What is between the semicolons of `super.users`."""
    return [principal.strip() for principal in text.split(";") if principal.strip()]
