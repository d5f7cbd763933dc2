"""A hostile RTDE peer costs the client bounded time and memory, and never an exception."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from test.telemetry.rtde.fuzz import FIELDS, GREETING, KINDS, feed
from ur_energy_model.telemetry.rtde.protocol import Recipe, frame

RECIPE = Recipe(FIELDS, KINDS, 1)  # type: ignore[arg-type]


def packages(times):
    values = {"actual_q": np.zeros(6), "payload": 1.0, "robot_mode": 7}
    return [RECIPE.pack({**values, "timestamp": time}) for time in times]


HONEST = b"".join(packages(100.0 + np.arange(30) * 0.002))
PIECES = st.one_of(
    st.binary(max_size=200),
    st.builds(frame, st.integers(0, 255), st.binary(max_size=300)),
    st.lists(st.floats(), min_size=1, max_size=20).map(lambda times: b"".join(packages(times))),
    st.just(HONEST),
    st.just(frame(77, b"\x05hello\x00\x02") * 50),
    st.just(b"\xff\xff"),
    st.just(b"\x00\x00\x00"),
)


def test_a_correct_peer_is_accepted():
    times = feed(GREETING + HONEST)
    assert times == (100.0 + np.arange(30) * 0.002).tolist()


@settings(max_examples=150)
@given(st.lists(PIECES, max_size=8))
def test_anything_may_follow_the_greeting(pieces):
    feed(GREETING + b"".join(pieces))


@settings(max_examples=100)
@given(st.lists(PIECES, max_size=5), st.integers(0, len(GREETING)))
def test_anything_may_follow_a_part_of_the_greeting(pieces, cut):
    assert feed(GREETING[:cut] + b"".join(pieces)) is not None


@settings(max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, len(GREETING + HONEST) - 1), st.integers(0, 255)),
        min_size=1,
        max_size=6,
    )
)
def test_any_bytes_of_a_correct_stream_may_change(changes):
    data = bytearray(GREETING + HONEST)
    for place, value in changes:
        data[place] = value
    feed(bytes(data))
