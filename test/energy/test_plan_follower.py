"""Reader thread, and the measured energy of planned motions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from test.energy.known_arm import RATE, ROBOT, changed, known_model, motion, packets, total
from ur_energy_model.energy import plan_follower
from ur_energy_model.energy import source_reader as module
from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.plan_follower import PlanFollower, Verdict
from ur_energy_model.energy.source_reader import SourceReader
from ur_energy_model.errors import ControllerError, RecordingError
from ur_energy_model.telemetry.samples import Event, RecordingInfo, Telemetry
from ur_energy_model.telemetry.source import LinkStatus
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.typing import Array

START = np.array([0.0, -1.2, 1.0, -1.0, 0.3, 0.0])
WAY = np.array([0.8, -0.3, 0.4, 0.0, 0.0, 1.0])
GOAL = START + WAY
TOTAL = LiveEstimator(known_model(), ROBOT).channels.arm["total"]
Piece = tuple[float, Array]
"""Seconds, and the place at their end: a smooth move there, or a hold."""
WAIT: list[Piece] = [(1.0, START)]
THERE: list[Piece] = [(2.0, GOAL)]
BENT: list[Piece] = [(1.5, START + WAY * [1, 0, 1, 1, 1, 0]), (1.5, GOAL)]
HELD: list[Piece] = [(0.8, START), *THERE, (1.5, GOAL), (1.0, START + 0.5 * WAY), (0.7, GOAL)]


def path(pieces: list[Piece], start: Array = START) -> tuple[Array, Array, Array]:
    """Times at 500 Hz, positions and speeds of pieces one after the other."""
    times, places, speeds, now = [np.zeros(1)], [start[None]], [np.zeros((1, 6))], 0.0
    for seconds, goal in pieces:
        u = np.arange(1, round(seconds * RATE) + 1)[:, None] / round(seconds * RATE)
        times.append(now + seconds * u[:, 0])
        places.append(start + (goal - start) * u**3 * (10 - 15 * u + 6 * u**2))
        speeds.append((goal - start) * 30 * u**2 * (1 - u) ** 2 / seconds)
        start, now = goal, now + seconds
    return np.concatenate(times), np.concatenate(places), np.concatenate(speeds)


def plan_of(pieces: list[Piece], start: Array = START) -> Plan:
    time, q, qd = path(pieces, start)
    return Plan(time[::25], q[::25], qd[::25])


def slower(pieces: list[Piece], factor: float) -> list[Piece]:
    return [(factor * seconds, goal) for seconds, goal in pieces]


def follow(
    follower: PlanFollower,
    pieces: list[Piece],
    start: Array = START,
    *,
    packet: int = 10,
    left_out: tuple[float, float] = (0.0, 0.0),
) -> tuple[list[Verdict], Callable[[float, float], float]]:
    """Verdicts while the arm moves, and the true energy between two times from its start."""
    time, q, qd = path(pieces, start)
    arm = changed(motion((len(time) - 1) / RATE), actual_q=q, actual_qd=qd)
    arm.columns["actual_current"][:] = 2.0 * qd + 0.5
    arm.columns["actual_robot_current"][:] = total(arm) / 48.0
    estimator, found = LiveEstimator(known_model(), ROBOT), list[Verdict]()
    for batch in packets(arm, packet):
        estimator.update(batch)
        if left_out[0] <= batch.time[-1] - arm.time[0] < left_out[1]:
            continue
        snapshot = estimator.snapshot()
        assert snapshot is not None
        found += follower.update(snapshot)

    def truth(first: float, last: float) -> float:
        rows = (time >= first - 1e-9) & (time <= last + 1e-9)
        return float(np.trapezoid(total(arm)[rows], time[rows]))

    return found, truth


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Motions must begin within 6.5 s."""
    monkeypatch.setattr(plan_follower, "EXPECTED", (-1.0, 6.5))


@pytest.mark.parametrize(
    ("plan", "done", "begins"),
    [
        pytest.param(THERE, [*WAIT, *THERE], 1.0, id="exactly"),
        pytest.param(BENT, [*WAIT, *BENT], 1.0, id="with a stop"),
        pytest.param(HELD, [*WAIT, *HELD], 1.0, id="with holds at its start and within"),
        pytest.param(THERE, [(0.3, START), *THERE, (1.0, START)], 0.3, id="without a rest after"),
        pytest.param(
            THERE,
            [*WAIT, (1.0, START + 0.3), (2.0, START), *WAIT, *THERE],
            5.0,
            id="after another motion",
        ),
        pytest.param(THERE, [*WAIT, *THERE, *WAIT, (0.5, START), *THERE], 1.0, id="and then again"),
        pytest.param(
            THERE, [*WAIT, *slower(THERE, 2.0), (2.0, START), *WAIT, *THERE], 8.0, id="after slow"
        ),
    ],
)
def test_the_motion_of_a_plan_is_measured(
    plan: list[Piece], done: list[Piece], begins: float
) -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(plan))
    found, truth = follow(follower, [*done, (1.0, done[-1][1])])
    (measured,) = (each for _, each in found if isinstance(each, MeterReading))
    seconds = sum(piece[0] for piece in plan)
    assert measured.net[TOTAL] == pytest.approx(truth(begins, begins + seconds), rel=0.02)
    assert measured.accounted == pytest.approx(seconds, abs=0.06)


@pytest.mark.parametrize(
    ("plan", "done", "reason"),
    [
        pytest.param(THERE, [*WAIT, (2.0, START - WAY)], "no motion", id="another motion"),
        pytest.param(THERE, [*WAIT, *slower(THERE, 2.0)], "instead of 2.0 s", id="at 50 %"),
        pytest.param(THERE, [*WAIT, *slower(THERE, 1.2)], "instead of 2.0 s", id="at 83 %"),
        pytest.param(
            BENT, [*WAIT, BENT[0], (1.5, BENT[0][1]), BENT[1]], "instead of 3.0 s", id="a pause"
        ),
        pytest.param(BENT, [*WAIT, (3.0, GOAL)], "no motion", id="another path to the same end"),
        pytest.param(BENT, [*WAIT, *reversed(BENT)], "no motion", id="reversed order"),
        pytest.param(
            THERE, [*WAIT, (2.0, GOAL + 0.03)], "no motion", id="an end beside the planned one"
        ),
        pytest.param(THERE, [(8.0, START), *THERE], "no motion", id="too late"),
        pytest.param([(0.5, START), (1.0, START)], [*WAIT, *THERE], "no motion", id="a hold"),
    ],
)
def test_another_motion_is_not_measured(
    plan: list[Piece], done: list[Piece], reason: str, impatient: None
) -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(plan))
    ((key, text),) = follow(follower, [*done, (7.0, done[-1][1])], packet=25)[0]
    assert key == "plan"
    assert isinstance(text, str)
    assert reason in text


@pytest.mark.parametrize("start", [GOAL, START + 0.1])
def test_a_motion_from_elsewhere_is_not_measured(start: Array, impatient: None) -> None:
    """The path reversed, and the same way beside it."""
    follower = PlanFollower()
    follower.expect("plan", plan_of(THERE))
    goal = START if start is GOAL else start + WAY
    found = follow(follower, [(1.0, start), (2.0, goal), (6.0, goal)], start, packet=25)[0]
    assert [type(each) for _, each in found] == [str]


def test_plans_in_a_row_are_each_measured_and_few_snapshots_are_not_enough() -> None:
    back: list[Piece] = [(1.5, START)]
    done = [*WAIT, *THERE, (0.5, GOAL), *back, (1.0, START)]
    for packet in (10, 100):
        follower = PlanFollower()
        follower.expect("back", plan_of(back, GOAL))
        follower.expect("there", plan_of(THERE))
        found, truth = follow(follower, done, packet=packet)
        assert [key for key, _ in found] == ["there", "back"]
        for (_, measured), (first, last) in zip(found, [(1.0, 3.0), (3.5, 5.0)], strict=True):
            if packet == 100:
                assert "gap" in str(measured)
            else:
                assert isinstance(measured, MeterReading)
                assert measured.net[TOTAL] == pytest.approx(truth(first, last), rel=0.02)


@pytest.mark.parametrize(
    ("left_out", "measured"), [((1.6, 1.9), True), ((2.8, 3.3), False), ((1.4, 2.2), False)]
)
def test_snapshots_may_be_left_out_within_a_motion_but_not_at_its_ends(
    left_out: tuple[float, float], measured: bool
) -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(THERE))
    found, truth = follow(follower, [*WAIT, *THERE, (1.0, GOAL)], left_out=left_out)
    ((_, reading),) = found
    assert isinstance(reading, MeterReading) == measured
    if isinstance(reading, MeterReading):
        assert reading.net[TOTAL] == pytest.approx(truth(1.0, 3.0), rel=0.02)


def test_a_new_clock_ends_what_was_followed() -> None:
    follower = PlanFollower()
    follower.expect("plan", plan_of(THERE))
    half = [*WAIT, (1.0, START + 0.5 * WAY)]
    assert not follow(follower, half)[0]
    found, _ = follow(follower, [*WAIT, *THERE, (1.0, GOAL)])
    assert [type(each) for _, each in found] == [MeterReading]


class Script:
    """A source whose reads do what a script says."""

    info = RecordingInfo(source="script")
    fields = ("timestamp",)
    status = LinkStatus()

    def __init__(self, steps: Iterator[Callable[[], Telemetry | None]]) -> None:
        self.steps = steps

    def __enter__(self) -> Script:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read(self, timeout: float) -> Telemetry | None:
        return next(self.steps)()

    def take_events(self) -> list[Event]:
        return []

    def close(self) -> None:
        pass


def batch() -> Telemetry:
    return Telemetry(np.zeros(1), {})


def fail(error: Exception) -> Callable[[], Telemetry | None]:
    def step() -> Telemetry | None:
        raise error

    return step


def finished(reader: SourceReader) -> SourceReader:
    reader.start()
    reader._thread.join(20.0)
    assert not reader._thread.is_alive()
    return reader


def test_a_lost_controller_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_PERIOD", 0.01)
    lost = ControllerError("script", "is gone", "wait")
    steps = iter([batch, fail(lost), batch, lambda: None, fail(EOFError())])
    got: list[Telemetry] = []
    reader = finished(SourceReader(lambda: Script(steps), got.append))
    assert len(got) == 2
    assert (reader.attempts, reader.ended, reader.failure, reader.problem) == (2, True, None, None)


def test_other_errors_end_the_thread_and_are_kept() -> None:
    error = RecordingError("script", "is damaged", "record again")
    reader = finished(SourceReader(lambda: Script(iter([fail(error)])), lambda _: None))
    assert reader.failure is error
    assert "damaged" in str(reader.problem)


def test_a_recorded_source_may_be_repeated() -> None:
    rounds = iter([[batch, fail(EOFError())], [batch, fail(EOFError())]])
    stop = threading.Event()

    def source() -> Script:
        steps = next(rounds, None)
        if steps is None:
            stop.set()
            raise RecordingError("script", "has no more rounds", "end")
        return Script(iter(steps))

    got: list[Telemetry] = []
    finished(SourceReader(source, got.append, loop=True))
    assert len(got) == 2
    assert stop.is_set()
