"""A frame is what its seed and its number make it."""

from collections import deque

from barnabas.protocol.api import ApiKey, request_type
from barnabas.protocol.frames import framed
from tests.fuzz.attacker import Boundaries, _answered
from tests.fuzz.broker import _traceback
from tests.fuzz.frames import Frame, Frames
from tests.fuzz.world import WITNESS, World

APIS = {key: request_type(key).versions for key in ApiKey}


def frames_of(seed, count):
    frames = Frames(seed, APIS, World())
    return [frames.make(number) for number in range(1, count + 1)]


def test_the_same_seed_and_number_make_the_same_frame():
    first, again, other = ([frame.data for frame in frames_of(seed, 50)] for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_every_api_comes_up_whole_and_damaged():
    frames = frames_of(1, 12_000)
    assert {frame.key for frame in frames if frame.message is not None} == set(ApiKey)
    assert {frame.key for frame in frames if frame.message is None} == set(ApiKey)


def test_no_frame_names_the_topic_of_the_witness():
    assert not [frame for frame in frames_of(1, 1000) if WITNESS.encode() in frame.data]


def expected(*frames):
    return [
        Frame(number, ApiKey.HEARTBEAT, 0, None if damaged else object(), b"", number) for number, damaged in frames
    ]


def test_which_frame_an_answer_is_to():
    whole, damaged, last = expected((1, False), (2, True), (3, False))
    queue = deque([whole, damaged, last])
    assert _answered(queue, 1) is whole
    assert _answered(queue, 3) is last  # the damaged one had no answer
    assert not queue
    queue = deque([damaged, last])
    assert _answered(queue, 77) is damaged  # its correlation id was damaged, too
    assert _answered(queue, 77) is None


def test_a_frame_may_be_read_as_the_rest_of_the_one_before_it():
    boundaries = Boundaries()
    assert boundaries.begins_a_frame(framed(b"whole"))
    assert boundaries.begins_a_frame(framed(b"too short")[:-6])
    assert not boundaries.begins_a_frame(framed(b"ab"))
    assert boundaries.begins_a_frame(framed(b"whole")[:2])
    assert not boundaries.begins_a_frame(framed(b"whole")[2:])
    assert boundaries.begins_a_frame(framed(b"one") + framed(b"and another"))
    assert boundaries.begins_a_frame(framed(b"whole"))


def test_what_is_a_traceback():
    assert _traceback('{"event": "connection closed"}') is None
    assert "broken" in _traceback('{"event": "failed", "exception": "ValueError: broken"}')
    assert _traceback("Traceback (most recent call last):") is not None
