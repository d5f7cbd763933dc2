# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Samples from a driver's JointState messages: order, losses, and messages that cannot be used."""

import numpy as np
import pytest

from ur_energy_model.telemetry.bag.cdr import CdrBuilder
from ur_energy_model.telemetry.joint_states import (
    AHEAD,
    CLOCK_SET_AFTER,
    JointStateStream,
)

JOINTS = ("left_a", "left_b")
NAMES = ("left_b", "finger", "left_a")
START = 1_700_000_000_000_000_000
PERIOD = 2_000_000  # of the driver [ns]


def messages(stamps, names=NAMES, values=None, counts=None):
    """Encoded messages; `values` [n, position, velocity and effort side by side]."""
    counts = counts or (len(names),) * 3
    template = CdrBuilder().add("tsSddd", 0, "base", names, *counts).template()
    if values is None:
        values = np.tile(np.arange(template.width, dtype=float), (len(stamps), 1))
    return [row.tobytes() for row in template.encode(np.array(stamps, np.int64), values)]


def stamps(first, count):
    return [START + PERIOD * k for k in range(first, first + count)]


@pytest.fixture
def subject():
    return JointStateStream(JOINTS, "actual_current")


def read(subject, encoded, numbers=None, arrival=0.0):
    (batch,) = subject.read(encoded, numbers, arrival)
    return batch


@pytest.mark.parametrize(
    ("names", "counts", "said"),
    [
        (("a", "b"), None, "lack left_a, left_b (they name a, b); check tf_prefix"),
        (("left_a", "left_b", "left_a"), None, "name a joint twice"),
        (JOINTS, (2, 3, 2), "have 3 velocities for 2 joints"),
        (JOINTS, (3, 3, 200_000), "cannot be decoded: message is too large"),
    ],
)
def test_messages_that_cannot_be_used_say_why(subject, names, counts, said):
    assert subject.read(messages(stamps(0, 1), names, counts=counts), None, 0.0) == []
    assert subject.problem.startswith(said)


def test_efforts_that_come_and_go_divide_the_batch(subject):
    values = np.tile(np.arange(9.0), (10, 1))
    values[4:7, 6:] = np.nan
    encoded = messages(stamps(0, 10), values=values)
    found = [
        (len(each), "actual_current" in each) for each in subject.read(encoded, None, 0.0)
    ]
    assert found == [(4, True), (3, False), (3, True)]
    strict = JointStateStream(JOINTS, "actual_current", require_effort=True)
    assert sum(map(len, strict.read(encoded, None, 0.0))) == 7
    ((reason, count),) = strict.refused.items()
    assert "efforts" in reason
    assert count == 3


def test_time_goes_on_where_the_clock_of_the_stamps_is_set(subject):
    shift = -3600
    last = read(subject, messages(stamps(0, 100)), None, 0.2).time[-1]
    moved = [stamp + shift * 10**9 for stamp in stamps(100, 600)]
    after = []
    for k in range(6):
        part = messages(moved[100 * k : 100 * (k + 1)])
        after += subject.read(part, None, 0.2 + (CLOCK_SET_AFTER / 4 + 0.1) * (k + 1), 2)
    assert subject.clock_steps == 1
    assert after[0].gaps[0].cause == "clock set"
    assert last < after[0].time[0] < last + AHEAD + CLOCK_SET_AFTER
    assert (np.diff(np.concatenate([each.time for each in after])) > 0).all()
    assert subject.losses.seconds < AHEAD + CLOCK_SET_AFTER
    assert after[-1].stamp[-1] == moved[-1]  # as published


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("shift", [-3600.0, -0.02, 7200.0])
# between two arrivals, and in the middle of one
@pytest.mark.parametrize("place", [100, 130])
def test_nothing_is_lost_where_the_clock_of_the_only_driver_is_set(
    subject, numbered, shift, place
):
    """Not even a driver that is another one: there is only one."""
    times = np.array(stamps(0, 400))
    times[place:] += round(shift * 1e9)
    batches = []
    for first in range(0, 400, 20):
        part = slice(first, first + 20)
        numbers = list(range(first, first + 20)) if numbered else None
        batches += subject.read(
            messages(times[part].tolist()), numbers, 0.04 * first / 20, 1
        )
    time = np.concatenate([each.time for each in batches])
    assert len(time) == 400
    assert (np.diff(time) > 0).all()
    assert np.ptp(time) == pytest.approx(399 * 0.002, abs=1e-6 if numbered else 0.041)
    assert (subject.refused.total(), subject.clock_steps) == (0, 1)
    assert subject.losses.samples == 0
    assert np.concatenate([each.stamp for each in batches]).tolist() == times.tolist()


def test_what_two_drivers_send_is_not_a_clock_that_is_set(subject):
    """One of them is behind by as much as a clock may be set back."""
    for first in range(0, 400, 20):
        two = zip(stamps(first, 20), stamps(first - 50, 20), strict=True)
        encoded = messages([stamp for pair in two for stamp in pair])
        (batch,) = subject.read(encoded, None, 0.04 * first / 20, 2)
        assert len(batch) == 20
    assert subject.clock_steps == 0
    ((reason, count),) = subject.refused.items()
    assert "second driver" in reason
    assert count == 400


def test_single_messages_are_refused_and_the_others_used(subject):
    good = messages(stamps(0, 10))
    values = np.tile(np.arange(9.0), (2, 1))
    values[0, 0] = np.nan
    values[1, 5] = np.inf
    bad = messages(stamps(3, 2), values=values)
    junk = [messages([0])[0], b"", b"\x00\x01\x00\x00junk"]
    batch = read(subject, [*good[:3], *bad, *junk, *good[5:]])
    assert batch["actual_q"].tolist() == [[2.0, 0.0]] * 8  # in the arm's order
    assert batch["actual_qd"].tolist() == [[5.0, 3.0]] * 8
    assert batch["actual_current"].tolist() == [[8.0, 6.0]] * 8
    assert batch.stamp.tolist() == [*stamps(0, 3), *stamps(5, 5)]
    assert subject.refused["have positions or velocities that are not finite"] == 2
    assert subject.refused["have no time stamp"] == 1
    assert (subject.refused.total(), subject.problem) == (5, None)
