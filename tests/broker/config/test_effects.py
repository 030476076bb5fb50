"""Every setting that claims an effect is read by some code, and no other setting is.

The code is not run but read: a setting counts as read where its attribute is loaded from something called `config` or
`settings`. A value that only decides about the validity of other values has no effect, so `consistency.py` is left out.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from barnabas.broker.config.definitions.topic import SYNONYMS
from barnabas.broker.config.names import SETTINGS
from barnabas.broker.config.topic_config import TOPIC_SETTINGS

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "broker" / "config"
# These turn settings into what others read: the listeners, the data directory, the age at which a segment ends.
TRANSLATING = [CONFIG / "evaluate.py", CONFIG / "broker_config.py", ROOT / "storage" / "config.py"]
LIVE = [
    file
    for part in ("broker", "storage")
    for file in sorted((ROOT / part).rglob("*.py"))
    if not file.is_relative_to(CONFIG)
]
# The broker starts only if the first has the right value; the second is another name for node.id.
WITHOUT_ATTRIBUTE = {"process.roles", "broker.id"}


def loaded(files: list[Path], owners: set[str]) -> Iterator[str]:
    """The attributes that are read from something with one of these names, as in `self._config.num_partitions`."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                owner = node.value
                name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
                if name.lstrip("_") in owners:
                    yield node.attr


@cache
def read() -> set[str]:
    return {*loaded(LIVE, {"config", "settings"}), *loaded(TRANSLATING, {"self", "settings"})}


# A topic's settings go into the LogConfig of its logs, most of them under the same name.
PASSED_ON = set(loaded([CONFIG / "log_config.py"], {"topic"}))
PASSED_ON_AS = {
    "compression_gzip_level": "compression_level",
    "compression_zstd_level": "compression_level",
    "internal_segment_bytes": "segment_bytes",
}


# The controller reads it from the topic itself: no log has to know it.
OF_THE_CONTROLLER = {"unclean_leader_election_enable"}


def topic_settings_that_are_read() -> set[str]:
    return {
        name
        for name, setting in TOPIC_SETTINGS.items()
        if (setting.attribute in PASSED_ON and PASSED_ON_AS.get(setting.attribute, setting.attribute) in read())
        or (setting.attribute in OF_THE_CONTROLLER and setting.attribute in read())
    }


def broker_settings_that_are_read() -> set[str]:
    as_defaults = {
        synonym for topic_name in topic_settings_that_are_read() for synonym, _ in SYNONYMS.get(topic_name, ())
    }
    # A name that topics have too is the topic's wherever a log's configuration is read.
    own = {name for name, setting in SETTINGS.items() if setting.attribute in read() and name not in TOPIC_SETTINGS}
    return own | as_defaults | WITHOUT_ATTRIBUTE


def test_the_settings_of_a_broker_work_as_declared():
    assert broker_settings_that_are_read() == {name for name, setting in SETTINGS.items() if setting.effect.works}


def test_the_settings_of_a_topic_work_as_declared():
    assert topic_settings_that_are_read() == {name for name, setting in TOPIC_SETTINGS.items() if setting.effect.works}


def test_a_topic_setting_and_the_one_that_it_takes_its_default_from_work_alike():
    for name, synonyms in SYNONYMS.items():
        for synonym, _ in synonyms:
            assert SETTINGS[synonym].effect.works == TOPIC_SETTINGS[name].effect.works, (name, synonym)
