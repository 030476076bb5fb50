"""Topics of streams applications: created once at a time, and not tried again at once after an error."""

import asyncio

from barnabas.broker.controller.results import TopicResult
from barnabas.broker.group.streams.configuration import InternalTopic
from barnabas.broker.streams_topics import StreamsTopics
from barnabas.protocol.errors import ErrorCode

LOG = InternalTopic("log", 3, 0, {"cleanup.policy": "compact"})
TABLE = InternalTopic("table", 2, 1, {})


class Creation:
    """What is asked of the controller, and what it answers."""

    def __init__(self):
        self.now_ms = 0
        self.asked = []
        self.failed = []
        self.tasks = []
        self.topics = StreamsTopics(self.create, self.start, lambda: self.now_ms)

    async def create(self, topics):
        self.asked.append([(topic.name, topic.num_partitions, topic.replication_factor) for topic in topics])
        return self.failed

    def start(self, work):
        self.tasks.append(asyncio.ensure_future(work))

    async def done(self):
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_what_is_being_created_is_not_created_twice():
    creation = Creation()
    creation.topics.create([LOG], 100)
    creation.topics.create([LOG, TABLE], 100)
    await creation.done()
    assert creation.asked == [[("log", 3, -1)], [("table", 2, 1)]]
    creation.topics.create([LOG], 100)  # it was deleted meanwhile
    await creation.done()
    assert creation.asked[2:] == [[("log", 3, -1)]]


async def test_an_error_is_told_for_a_while_and_then_it_is_tried_again():
    creation = Creation()
    creation.failed = [
        TopicResult("log", error_code=ErrorCode.INVALID_CONFIG, error_message="no such setting"),
        TopicResult("table", error_code=ErrorCode.INVALID_PARTITIONS),
    ]
    creation.topics.create([LOG, TABLE], 100)
    await creation.done()
    assert creation.topics.errors(["log", "other"]) == {"log": "no such setting"}
    assert creation.topics.errors(["table"]) == {"table": "INVALID_PARTITIONS"}
    creation.now_ms = 99
    creation.topics.create([LOG], 100)
    await creation.done()
    assert len(creation.asked) == 1
    creation.now_ms = 100
    assert creation.topics.errors(["log"]) == {}
    creation.topics.create([LOG], 100)
    await creation.done()
    assert len(creation.asked) == 2


async def test_a_creation_that_breaks_off_may_be_tried_again():
    creation = Creation()
    creation.topics._create = None
    creation.topics.create([LOG], 100)
    await creation.done()
    creation.topics._create = creation.create
    creation.topics.create([LOG], 100)
    await creation.done()
    assert len(creation.asked) == 1


async def test_not_every_error_is_remembered():
    creation = Creation()
    names = [f"log-{index}" for index in range(1001)]
    creation.failed = [TopicResult(name, error_code=ErrorCode.INVALID_CONFIG) for name in names]
    creation.topics.create([InternalTopic(name, 1, 0, {}) for name in names], 100)
    await creation.done()
    assert list(creation.topics.errors(names)) == names[1:]
