"""Java's .properties files.

A line is `name = value`, `name : value` or `name value`. `#` or `!` begins a comment. After a backslash at the end, the
line continues with the next one, without its leading blanks. In names and values, a backslash escapes: \\t \\n \\r \\f
and \\uXXXX mean what they mean in Java, and any other character stands for itself.
"""

import re
from typing import NamedTuple

from barnabas.broker.config.errors import ConfigError

_BLANKS = " \t\f"
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_SEPARATOR = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.?)", re.DOTALL)
_ESCAPED = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


class Property(NamedTuple):
    name: str
    value: str
    line: int  # where it begins, starting at 1


def read_properties(path: str) -> list[Property]:
    """The properties in a file; ConfigError if it cannot be read."""
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}"]) from None
    return parse_properties(decode_properties(content), path)


def decode_properties(content: bytes) -> str:
    """Decode UTF-8, which people write, or else Latin-1, which Java prescribes and which never fails."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def parse_properties(text: str, path: str) -> list[Property]:
    """The properties in their order, repeated names included. ConfigError for malformed lines."""
    properties = []
    problems = []
    # Not splitlines(), which also ends a line at a form feed or at one of Unicode's separators.
    lines = enumerate(re.split("\r\n|\n|\r", text), start=1)
    for number, natural_line in lines:
        line = natural_line.lstrip(_BLANKS)
        if not line or line == "\\" or line[0] in "#!":
            continue
        while _is_continued(line):
            _, next_line = next(lines, (0, ""))
            line = line[:-1] + next_line.lstrip(_BLANKS)
        try:
            properties.append(_parse_line(line, number))
        except ValueError as error:
            problems.append(f"{path}:{number}: {error}")
    if problems:
        raise ConfigError(problems)
    return properties


def _is_continued(line: str) -> bool:
    """Whether the line ends in a backslash that is not itself escaped."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _parse_line(line: str, number: int) -> Property:
    name = _NAME.match(line)
    name_end = name.end() if name else 0
    separator = _SEPARATOR.match(line, name_end)
    value_start = separator.end() if separator else name_end
    return Property(_unescape(line[:name_end]), _unescape(line[value_start:]), number)


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match[1]
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ValueError(r"\u must be followed by four hexadecimal digits")
        return _ESCAPED.get(escaped, escaped)

    if "\\" not in text:
        return text
    unescaped = _ESCAPE.sub(replace, text)
    try:
        # Java escapes a character above U+FFFF as its two UTF-16 surrogates.
        return unescaped.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError(r"\u gives only half of a surrogate pair") from None
