"""What may come next on a command line: the side of shell completion that knows our arguments.

The scripts of `barnabas completion` call `barnabas __complete SHELL ...` with what has been typed. What comes back is a
candidate per line, or one word with a colon that tells the shell to complete files or directories itself.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from barnabas.command.parser import Parser

_FILES: Final = ":files"
_DIRECTORIES: Final = ":directories"

# Nobody waits longer than this for a completion.
_TIMEOUT: Final = "1s"


class Candidate(NamedTuple):
    text: str
    summary: str = ""


def complete(arguments: Sequence[str], parser: Parser) -> int:
    """Print the candidates. If anything goes wrong there are none: an error would garble the user's line."""
    shell, *typed = arguments
    words = _split(typed[0]) if shell == "bash" else typed
    try:
        found = list(candidates(parser, words))
    except Exception:
        found = []
    for each in found:
        print(_WRITTEN[shell](each, words[-1]))
    return 0


def _split(line: str) -> list[str]:
    """The words of a line after the command itself. Bash splits words at = and :, so it hands over the whole line."""
    try:
        words = shlex.split(line)
    except ValueError:  # a quote is still open
        words = line.split()
    while words and re.match(r"\w+=", words[0]):
        words.pop(0)
    return [*words[1:], ""] if line[-1:].isspace() else words[1:]


def _for_bash(candidate: Candidate, word: str) -> str:
    """Bash replaces only what comes after the last = or :."""
    kept = max(word.rfind("="), word.rfind(":")) + 1
    return candidate.text if candidate.text.startswith(":") else candidate.text[kept:]


def _for_zsh(candidate: Candidate, word: str) -> str:
    if candidate.text.startswith(":"):
        return candidate.text
    return candidate.text.replace(":", "\\:") + (f":{candidate.summary}" if candidate.summary else "")


def _for_fish(candidate: Candidate, word: str) -> str:
    return f"{candidate.text}\t{candidate.summary}" if candidate.summary else candidate.text


_WRITTEN: Final = {"bash": _for_bash, "zsh": _for_zsh, "fish": _for_fish}


def candidates(parser: Parser, words: Sequence[str]) -> Iterator[Candidate]:
    """What the last word may become, after the others."""
    *before, word = words
    line = _Line(parser)
    for each in before:
        line.take(each)
    for candidate in line.possible(word):
        if candidate.text.startswith((word, ":")):
            yield candidate


class _Line:
    """Reads words as argparse does, and keeps what they mean."""

    def __init__(self, parser: Parser) -> None:
        self._values: dict[str, str] = {}
        self._option: argparse.Action | None = None  # waits for its value
        self._enter(parser)

    def _enter(self, parser: argparse.ArgumentParser) -> None:
        if isinstance(parser, Parser):
            parser.load()
        self._options = {name: action for action in parser._actions for name in action.option_strings}
        self._positionals = [action for action in parser._actions if not action.option_strings]

    def take(self, word: str) -> None:
        if self._option is not None and _is_value(self._option, word):
            self._values[self._option.dest] = word
            self._option = None
        elif word.startswith("-"):
            name, equals, value = word.partition("=")
            action = self._options.get(name)
            self._option = action if action is not None and action.nargs != 0 and not equals else None
            if action is not None and equals:
                self._values[action.dest] = value
        elif self._positionals:
            action = self._positionals[0]
            if isinstance(action, argparse._SubParsersAction):
                chosen = action.choices.get(word)
                self._positionals = []
                if chosen is not None:
                    self._enter(chosen)
                return
            self._values[action.dest] = word
            if action.nargs not in ("+", "*"):
                self._positionals.pop(0)

    def possible(self, word: str) -> Iterator[Candidate]:
        if self._option is not None and _is_value(self._option, word):
            yield from self._of(self._option)
        elif word.startswith("-"):
            name, equals, _ = word.partition("=")
            if equals and name in self._options:
                for each in self._of(self._options[name]):
                    yield each if each.text.startswith(":") else each._replace(text=f"{name}={each.text}")
            else:
                for option, action in self._options.items():
                    if option.startswith("--") or word == "-":
                        yield Candidate(option, _summary(action))
        elif self._positionals:
            yield from self._of(self._positionals[0])

    def _of(self, action: argparse.Action) -> Iterator[Candidate]:
        if isinstance(action, argparse._SubParsersAction):
            yield from (Candidate(each.dest, each.help or "") for each in action._choices_actions)
        elif action.choices is not None:
            yield from map(Candidate, map(str, action.choices))
        elif isinstance(action.metavar, str) and action.metavar in _SOURCES:
            yield from map(Candidate, _SOURCES[action.metavar](self._values))


def _is_value(option: argparse.Action, word: str) -> bool:
    """Whether the word after an option belongs to it. Some options can do without a value."""
    return not (option.nargs == "?" and word.startswith("-"))


def _summary(action: argparse.Action) -> str:
    return re.sub(r"\s*\(default.*", "", (action.help or "").replace("%%", "%"))


def _profiles(values: dict[str, str]) -> list[str]:
    from barnabas.command.profiles import profile_names

    return profile_names()


def _connected(ask: Callable[[Any, dict[str, str]], list[str]]) -> Callable[[dict[str, str]], list[str]]:
    """`ask` with a client of the broker that the line names."""

    def names(values: dict[str, str]) -> list[str]:
        from barnabas.command.arguments import client
        from barnabas.command.values import duration

        given = {name: values[name] for name in ("bootstrap", "profile") if name in values}
        with client(argparse.Namespace(**given, timeout=duration(_TIMEOUT))) as connected:
            return ask(connected, values)

    return names


def _topics(client: Any, values: dict[str, str]) -> list[str]:
    return [topic.name or "" for topic in client.topics(None) if not topic.is_internal]


def _groups(client: Any, values: dict[str, str]) -> list[str]:
    from barnabas.client.group_admin import list_groups

    return [group.group_id for group in list_groups(client)]


def _resources(client: Any, values: dict[str, str]) -> list[str]:
    if values["kind"] == "group":
        return _groups(client, values)
    from barnabas.client.config_admin import resources

    return resources(client, values["kind"])


def _keys(client: Any, values: dict[str, str]) -> list[str]:
    from barnabas.client.config_admin import settings_of

    kind, name = (values["kind"], values["name"]) if "kind" in values else ("topic", values["topics"])
    return [setting.name for setting in settings_of(client, kind, name)]


def _assignments(client: Any, values: dict[str, str]) -> list[str]:
    return [f"{key}=" for key in _keys(client, values)]


# By the metavar of an argument, which says what it is.
_SOURCES: Final[dict[str, Callable[[dict[str, str]], list[str]]]] = {
    "FILE": lambda values: [_FILES],
    "server.properties": lambda values: [_FILES],
    "DIR": lambda values: [_DIRECTORIES],
    "PROFILE": _profiles,
    "TOPIC": _connected(_topics),
    "TOPIC[:0,1,2]": _connected(_topics),
    "GROUP": _connected(_groups),
    "RESOURCE": _connected(_resources),
    "KEY": _connected(_keys),
    "KEY=VALUE": _connected(_assignments),
}
