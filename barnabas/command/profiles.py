"""The user's config file: named profiles, each with the brokers of one cluster.

    profile = "local"                  # used unless --profile or BARNABAS_PROFILE names another

    [profiles.local]
    bootstrap = "localhost"

    [profiles.staging]
    bootstrap = "kafka-1.example.com,kafka-2.example.com"
    timeout = "10s"

It is ~/.config/barnabas/config.toml, or in $XDG_CONFIG_HOME instead of ~/.config. It is optional.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.command.ending import UsageError

_VARIABLE: Final = "BARNABAS_PROFILE"
_KEYS: Final = ("bootstrap", "timeout")


class Profile(NamedTuple):
    """What a profile says, as it is written. `origin` names it in messages."""

    origin: str = ""
    bootstrap: str | None = None
    timeout: str | None = None


def config_file() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME", "")
    # The XDG specification says to ignore a relative path.
    folder = Path(home) if os.path.isabs(home) else Path.home() / ".config"
    return folder / "barnabas" / "config.toml"


def profile_names() -> list[str]:
    return list(_profiles(_read(config_file()), config_file()))


def load_profile(name: str | None = None) -> Profile:
    """The profile of this name, or the one that the environment or else the file chooses, or an empty one."""
    path = config_file()
    content = _read(path)
    profiles = _profiles(content, path)
    chosen = name or os.environ.get(_VARIABLE) or content.get("profile")
    if chosen is None:
        return Profile()
    if not isinstance(chosen, str):
        raise UsageError(f"{path}: profile is the name of a profile, in quotes")
    if chosen not in profiles:
        known = f"it has {', '.join(profiles)}" if profiles else "it has none" if path.exists() else "there is no file"
        raise UsageError(f"{path}: no profile is called {chosen!r}; {known}")
    return _profile(profiles[chosen], f"{path}: profiles.{chosen}")


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from None
    _refuse_unknown(content, ("profile", "profiles"), str(path))
    return content


def _profiles(content: dict[str, Any], path: Path) -> dict[str, Any]:
    profiles = content.get("profiles", {})
    if not isinstance(profiles, dict) or not all(isinstance(each, dict) for each in profiles.values()):
        raise UsageError(f"{path}: profiles are tables such as [profiles.local]")
    return profiles


def _profile(fields: dict[str, Any], origin: str) -> Profile:
    _refuse_unknown(fields, _KEYS, origin)
    for key, value in fields.items():
        if not isinstance(value, str):
            raise UsageError(f"{origin}.{key} is a text, in quotes")
    return Profile(origin, **fields)


def _refuse_unknown(fields: dict[str, Any], known: tuple[str, ...], origin: str) -> None:
    for key in fields:
        if key not in known:
            raise UsageError(f"{origin} has no key {key!r}; its keys are {' and '.join(known)}")
