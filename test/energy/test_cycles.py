# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""When cycles start, and what each of them took."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from test.energy.known_arm import ROBOT, changed, known_model, motion, packets, total
from test.energy.work_cycles import (
    LIFT,
    PICK,
    PLACE,
    palletising,
    pick_and_place,
    recorded,
)
from test.small_disk import SmallDisk, small_disk
from test.truth import first_fast
from ur_energy_model.energy.cycle_energies import ADDED, Cycle, CycleCounter, CycleLog
from ur_energy_model.energy.cycles import CycleDetector, Trigger
from ur_energy_model.energy.live import LiveEstimator, LiveOptions
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.topics import cycle_status
from ur_energy_model.files import config_file
from ur_energy_model.telemetry.bag.messages import OK, WARN
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, host_times
from ur_energy_model.trajectory.motions import Chain, Motion, move
from ur_energy_model.trajectory.named_motions import named_motion

SIGNALS: dict[Trigger, tuple[str, list[float], list[int]]] = {
    "program": ("runtime_state", [2, 2, 1, 2, 2, 4, 2], [3, 6]),
    "digital_output": ("actual_digital_output_bits", [0, 8, 12, 4, 8, 0, 255], [1, 4, 6]),
    "int_register": ("output_int_register_0", [0, 0, 5, 5, 6, 0, 0], [2, 4, 5]),
}


@pytest.mark.parametrize("trigger", SIGNALS)
@pytest.mark.parametrize("size", [1, 3])
def test_starts_are_found_at_their_samples(trigger: Trigger, size: int) -> None:
    field, signal, expected = SIGNALS[trigger]
    telemetry = Telemetry(np.arange(7.0), {field: np.array(signal)})
    starts = CycleDetector(trigger, output=3)
    found = []
    for i, batch in enumerate(packets(telemetry, size)):
        found += [int(k) + i * size for k in starts.find(batch)]
    assert found == expected


def run_cycles(log: Path, size: int) -> tuple[list[Cycle], Telemetry, LiveEstimator]:
    """Cycles that start at samples 500, 1250 and 2000."""
    telemetry = motion(6.0)
    register = np.zeros(len(telemetry))
    for place in (500, 1250, 2000):
        register[place:] += 1
    telemetry = changed(telemetry, output_int_register_0=register)
    done: list[Cycle] = []
    estimator = LiveEstimator(
        known_model(),
        ROBOT,
        LiveOptions(cycle_trigger="int_register", cycle_log=log),
        on_cycle=done.append,
    )
    for batch in packets(telemetry, size):
        estimator.update(batch)
    estimator.snapshot()
    return done, telemetry, estimator


@pytest.mark.parametrize("size", [1, 40])
def test_each_cycle_has_the_energy_of_its_samples(tmp_path: Path, size: int) -> None:
    log = tmp_path / "new" / "cycles.csv"
    done, telemetry, estimator = run_cycles(log, size)
    with log.open(newline="") as file:
        rows = list(csv.DictReader(file))
    first = done[0].summary(estimator.channels)
    assert rows[0]["total_source"] == first.pop("total_source") == "measured"
    assert {key: float(rows[0][key]) for key in first} == pytest.approx(first)
    assert [cycle.number for cycle in done] == [1, 2]
    power = total(telemetry)
    time = telemetry.time
    for cycle, (start, stop) in zip(done, [(500, 1250), (1250, 2000)], strict=True):
        summary = cycle.summary(estimator.channels)
        # A cycle reaches from the sample before its start to the last one before the
        # next.
        part = slice(start - 1, stop)
        assert summary["total_energy_J"] == pytest.approx(
            np.trapezoid(power[part], time[part])
        )
        assert summary["duration_s"] == pytest.approx(1.5)
        assert summary["unaccounted_s"] == 0.0
        assert [cycle.start, cycle.end] == pytest.approx(
            1e9 * time[[part.start, part.stop - 1]]
        )
        assert summary["start"] == pytest.approx(time[part.start])
        assert summary["peak_power_W"] == pytest.approx(power[start:stop].max())
        whole = summary["motion_energy_J"] + summary["idle_energy_J"]
        assert whole == pytest.approx(summary["total_energy_J"])
        assert summary["motion_time_s"] + summary["idle_time_s"] == pytest.approx(1.5)


@pytest.mark.parametrize("size", [1, 40])
def test_a_cycle_with_an_outage_states_it(tmp_path: Path, size: int) -> None:
    """Within the second of three cycles 0.9 s are missing, and 0.5 s around the end of the third.

    Its start and end by the host's clock are the duration apart also then.
    """
    telemetry = stamped(motion(10.0))
    register = np.zeros(len(telemetry))
    for place in (500, 1250, 2500, 3500, 4500):
        register[place:] += 1
    kept = np.ones(len(telemetry), dtype=bool)
    kept[1500:1949] = kept[3400:3649] = False
    telemetry = changed(telemetry, output_int_register_0=register).select(kept)
    log = tmp_path / "cycles.csv"
    done = list[Cycle]()
    options = LiveOptions(cycle_trigger="int_register", cycle_log=log)
    estimator = LiveEstimator(known_model(), ROBOT, options, on_cycle=done.append)
    for batch in packets(telemetry, size):
        estimator.update(batch)
    snapshot = estimator.snapshot()
    assert snapshot is not None
    missing = [0.0, 0.9, 0.0, 0.5]
    assert [cycle.unaccounted for cycle in done] == pytest.approx(missing)
    for cycle, seconds in zip(done, missing, strict=True):
        assert 1e-9 * (cycle.end - cycle.start) == pytest.approx(cycle.duration, abs=1e-6)
        part = slice(
            *np.searchsorted(host_times(telemetry), [cycle.start, cycle.end + 1])
        )
        power = total(telemetry)[part]
        time = telemetry.time[part]
        rows = np.flatnonzero(np.diff(time) < 0.1)
        energy = 0.5 * (power[rows] + power[rows + 1]) @ np.diff(time)[rows]
        status = cycle_status(cycle, estimator.channels)
        values = dict(status.values)
        assert status.level == (WARN if seconds else OK)
        assert values["total_energy_J"] == values["total_energy"] == pytest.approx(energy)
        assert values["unaccounted_s"] == pytest.approx(seconds)
        assert values["start"] == f"{cycle.start // 10**9}.{cycle.start % 10**9:09d}"
        assert ("without samples" in status.message) == bool(seconds)
    with log.open(newline="") as file:
        rows_ = list(csv.DictReader(file))
    assert [float(row["unaccounted_s"]) for row in rows_] == pytest.approx(missing)
    ended = [datetime.fromisoformat(row["ended"]).timestamp() for row in rows_]
    assert ended == pytest.approx([1e-9 * cycle.end for cycle in done], abs=1e-3)


def stamped(telemetry: Telemetry) -> Telemetry:
    """With the time of a host whose clock is another one."""
    stamp = 1_700_000_000 * 10**9 + np.round(telemetry.time * 1e9).astype(np.int64)
    return replace(telemetry, stamp=stamp)


def found(
    telemetry: Telemetry, size: int, detector: CycleDetector | None = None
) -> list[tuple[float, float]]:
    """Starts and ends of the cycles that are found without being asked for."""
    detector = detector or CycleDetector()
    times = list[float]()
    cycles = list[tuple[float, float]]()
    for batch in packets(telemetry, size):
        for index, mark in detector.find(batch).items():
            times.append(float(batch.time[index]))
            cycles += pairwise(times[-1 - back] for back in (*mark.ends, 0))
    return cycles


def played(*parts: tuple[Motion, float], rate: float) -> Telemetry:
    """Targets of motions one after another, each until its time [s]; they begin anew at an end."""
    samples = []
    begin = 0.0
    for each, seconds in parts:
        time = np.arange(np.ceil(begin * rate), (begin + seconds) * rate) / rate - begin
        samples.append(each.sample(np.mod(time, each.duration)))
        begin += seconds
    q, qd = (np.concatenate([part[k] for part in samples]) for k in range(2))
    columns = {"target_q": q, "target_qd": qd}
    return Telemetry(7.0 + np.arange(len(q)) / rate, columns, RecordingInfo(rate=rate))


@pytest.mark.parametrize(
    ("rate", "waits", "begin"),
    [
        (5.0, (0.3, 3.0), 0.0),
        (5.0, (1.0, 0.0), 1.0),
        (50.0, (0.6, 1.0), 0.0),
        (500.0, (0.3, 3.0), 1.0),
    ],
)
def test_motion_that_repeats_is_found(
    rate: float, waits: tuple[float, float], begin: float
) -> None:
    cycle = pick_and_place(short=waits[0], wait=waits[1])
    telemetry = recorded(cycle, 10.4 * cycle.duration, rate, begin=begin)
    cycles = found(telemetry, 1000)
    assert 9 <= len(cycles) <= 10
    assert np.diff(cycles) == pytest.approx(cycle.duration, abs=1.01 / rate)
    if waits[0] > 2.0 / rate:  # every rest is seen
        assert all(before[1] == after[0] for before, after in pairwise(cycles))
    assert found(telemetry, 7) == cycles


@pytest.mark.parametrize(
    ("rate", "pitch", "places", "grip"),
    [
        (500.0, 0.008, 4, 0.0),
        (500.0, 0.05, 6, 0.4),
        (125.0, 0.008, 3, 0.2),
        (50.0, 0.012, 5, 0.0),
        (10.0, 0.02, 4, 0.6),
    ],
)
def test_a_pallet_is_one_cycle_until_the_arm_is_back_at_its_first_place(
    rate: float, pitch: float, places: int, grip: float
) -> None:
    """A gripper opens and closes at each of its places, which does not make them cycles."""
    pallet = palletising(pitch, places, grip=grip)
    telemetry = recorded(pallet, 3.4 * pallet.duration, rate)
    place = pallet.duration / places
    closed = np.mod(telemetry.time - telemetry.time[0] - 0.4, place) < 0.5 * place
    telemetry = changed(telemetry, actual_digital_output_bits=closed.astype(float))
    assert np.diff(found(telemetry, 1000)) == pytest.approx(
        pallet.duration, abs=1.01 / rate
    )
    assert len(found(telemetry, 1000)) >= 2


def _stroke(wait: float) -> list[Motion]:
    """Down and up again, as a subprogram that is called in a row."""
    return [
        move(PICK, PICK + LIFT, 1.0, 4.0, 0.4),
        move(PICK + LIFT, PICK, 1.5, 4.0, wait),
    ]


def _calls(count: int) -> Chain:
    """There, the same work several times at one place, and back."""
    strokes = [each for _ in range(count) for each in _stroke(0.7)]
    return Chain(
        [move(PLACE, PICK, 1.5, 3.0, 0.5), *strokes, move(PICK, PLACE, 1.2, 3.0, 1.0)]
    )


@pytest.mark.parametrize("outputs", [False, True])
@pytest.mark.parametrize(
    ("rate", "count", "begin"),
    [(500.0, 5, 0.0), (125.0, 3, 2.5), (50.0, 4, 6.0), (10.0, 5, 1.0)],
)
def test_work_that_is_called_several_times_in_a_row_is_a_part_of_the_cycle(
    rate: float, count: int, begin: float, outputs: bool
) -> None:
    """Wherever the recording begins; also if a gripper closes in each call."""
    cycle = _calls(count)
    telemetry = recorded(cycle, 5.6 * cycle.duration, rate, begin=begin)
    if outputs:
        down = telemetry["target_q"][:, 1] < PICK[1] + 0.5 * LIFT[1]
        telemetry = changed(telemetry, actual_digital_output_bits=down.astype(float))
    detector = CycleDetector()
    detector.find(telemetry)
    afterwards = found(telemetry, 1000, detector.afterwards())
    assert np.diff(afterwards) == pytest.approx(cycle.duration, abs=1.01 / rate)
    assert len(afterwards) >= 4
    live = found(telemetry, 1000)
    assert np.diff(live[-2:]) == pytest.approx(cycle.duration, abs=1.01 / rate)


def test_maintenance_between_many_cycles_is_no_part_of_them() -> None:
    rate = 125.0
    work = pick_and_place(short=0.3, wait=1.0)
    clean = Chain(
        [move(PICK + LIFT, PICK, 1.0, 2.0, 0.5), move(PICK, PICK + LIFT, 0.7, 2.0, 0.5)]
    )
    once = ((work, 14 * work.duration), (clean, clean.duration))
    telemetry = played(*once, *once, *once, rate=rate)
    detector = CycleDetector()
    detector.find(telemetry)
    cycles = found(telemetry, 1000, detector.afterwards())
    assert np.diff(cycles) == pytest.approx(work.duration, abs=2.01 / rate)
    assert len(cycles) >= 36


@pytest.mark.parametrize("seed", range(5))
def test_one_of_two_branches_is_a_cycle(seed: int) -> None:
    """As a sensor chooses them: in no order that comes again."""
    good = Chain([move(PICK, PLACE, 1.5, 3.0, 0.6), move(PLACE, PICK, 1.5, 3.0, 0.5)])
    aside = PLACE + 2.0 * LIFT
    bad = Chain([move(PICK, aside, 1.5, 3.0, 0.6), move(aside, PICK, 1.5, 3.0, 0.5)])
    order = np.random.default_rng(seed).random(40) < 0.7
    telemetry = played(
        *((x, x.duration) for x in (good if g else bad for g in order)), rate=125.0
    )
    detector = CycleDetector()
    detector.find(telemetry)
    cycles = np.diff(found(telemetry, 1000, detector.afterwards()))
    assert cycles == pytest.approx(good.duration, abs=0.02)
    assert len(cycles) >= 0.8 * order.sum()


def counted(telemetry: Telemetry, size: int) -> list[Cycle]:
    """The cycles with the time that samples cover as their energy, and gaps as unaccounted."""
    steps = np.diff(telemetry.time, prepend=telemetry.time[0])
    seen = np.cumsum(np.where(steps > 0.1, 0.0, steps))
    missing = np.cumsum(np.where(steps > 0.1, steps, 0.0))
    counter = CycleCounter()
    cycles = list[Cycle]()
    first = 0
    detector = CycleDetector()
    for batch in packets(telemetry, size):
        for index, mark in detector.find(batch).items():
            row = max(first + index - 1, 0)
            net = seen[row : row + 1]
            reading = MeterReading(net, net, float(seen[row]), float(missing[row]))
            cycles += counter.mark(round(1e9 * telemetry.time[row]), reading, mark)
        first += len(batch)
    return cycles


@pytest.mark.parametrize("begin", [0.0, 0.4, 1.1, 2.3, 3.0])
@pytest.mark.parametrize("outage", first_fast([0.5, 1.5, 6.0]))
def test_an_outage_in_repeated_motion_is_in_a_cycle(outage: float, begin: float) -> None:
    """Wherever in the cycle it begins: none of the time between two cycles is left out."""
    work = pick_and_place(short=0.5, wait=1.0)
    telemetry = recorded(work, 14.0 * work.duration, 500.0)
    start = telemetry.time[0] + 6.0 * work.duration + begin
    kept = (telemetry.time < start) | (telemetry.time >= start + outage)
    cycles = counted(telemetry.select(kept), 20)
    assert all(one.end == next_.start for one, next_ in pairwise(cycles))
    assert [cycle.number for cycle in cycles] == [*range(1, len(cycles) + 1)]
    (torn,) = (cycle for cycle in cycles if not cycle.is_whole)
    assert torn.unaccounted == pytest.approx(outage, abs=0.005)
    whole = np.array([cycle.duration for cycle in cycles if cycle.is_whole])
    # An outage between two cycles hides the departure with which one of them begins.
    other = np.abs(whole - work.duration) > 0.01
    assert np.count_nonzero(other) <= (begin == 0.0)
    assert len(whole) >= 10


def test_other_work_with_an_outage_is_no_cycle() -> None:
    work = pick_and_place(short=0.5, wait=1.0)
    aside = Chain(
        [move(PICK + LIFT, PICK, 1.0, 2.0, 3.0), move(PICK, PICK + LIFT, 0.2, 2.0, 9.0)]
    )
    between = (aside, 2.9 * aside.duration)
    telemetry = played(
        (work, 6 * work.duration), between, (work, 6 * work.duration), rate=500.0
    )
    start = telemetry.time[0] + 6.5 * work.duration
    kept = (telemetry.time < start) | (telemetry.time >= start + 1.0)
    cycles = counted(telemetry.select(kept), 20)
    assert len(cycles) >= 9
    assert all(cycle.is_whole for cycle in cycles)


def _there_and_back() -> Motion:
    """Between two points, faster each time: a friction measurement."""
    segments = []
    for speed in np.geomspace(0.15, 2.0, 7):
        segments += [
            move(PICK, PLACE, speed, 4.0, 0.2),
            move(PLACE, PICK, speed, 4.0, 0.2),
        ]
    return Chain(segments)


@pytest.mark.parametrize("rate", [5.0, 125.0])
@pytest.mark.parametrize(
    ("motion", "times"),
    [
        (lambda: named_motion("trajectory_b", ROBOT), 1.0),
        (_there_and_back, 1.0),
        (lambda: named_motion("sinusoids", ROBOT), 3.0),
        (lambda: named_motion(config_file("excitation", "ur5e.yaml"), ROBOT), 2.0),
    ],
)
def test_no_cycle_is_found_where_nothing_is_repeated_work(
    motion: Callable[[], Motion], times: float, rate: float
) -> None:
    made = motion()
    seconds = min(times * made.duration, 100.0 * times)
    assert found(played((made, seconds), rate=rate), 500) == []


def test_work_that_is_interrupted_goes_on() -> None:
    rate = 50.0
    work = pick_and_place(short=0.3, wait=1.0)
    jog = Chain([move(PICK, PLACE, 1.0, 2.0, 0.5), move(PLACE, PICK, 0.7, 2.0, 0.5)])
    long = work.duration
    telemetry = played(
        (work, 4.5 * long), (jog, jog.duration), (work, 3.2 * long), rate=rate
    )
    cycles = found(telemetry, 100)
    assert np.diff(cycles) == pytest.approx(long, abs=1.01 / rate)
    assert [round((a - 7.0) / long, 1) for a, _ in cycles[:4]] == pytest.approx(
        [0, 1, 2, 3]
    )
    assert len(cycles) >= 6


@pytest.mark.parametrize("rate", [5.0, 50.0])
def test_program_starts_are_cycles_unless_something_repeats_in_between(
    rate: float,
) -> None:
    other = named_motion("trajectory_a", ROBOT)
    work = pick_and_place(short=0.4, wait=1.0)
    telemetry = played((other, 25.0), (work, 6.2 * work.duration), rate=rate)
    state = np.full(len(telemetry), 2.0)
    for begin, value in ((0.0, 1.0), (6.0, 1.0), (9.0, 4.0), (13.0, 1.0), (25.0, 1.0)):
        state[round(begin * rate) : round((begin + 0.4) * rate)] = value
    cycles = found(changed(telemetry, runtime_state=state), 40)
    starts = [begin + 7.4 for begin in (0.0, 6.0, 13.0, 25.0)]
    assert cycles[:3] == [
        pytest.approx(ends, abs=1.01 / rate) for ends in pairwise(starts)
    ]
    assert len(cycles) >= 7
    assert np.diff(cycles[3:]) == pytest.approx(work.duration, abs=1.01 / rate)


def test_an_output_shows_the_cycle_of_motion_without_rest() -> None:
    rate = 125.0
    period = 4.0
    time = np.arange(round(41.0 * rate)) / rate
    phase = 2 * np.pi * time[:, None] / period + np.arange(6)
    columns = {"target_q": np.sin(phase), "target_qd": 2 * np.pi / period * np.cos(phase)}
    telemetry = Telemetry(50.0 + time, columns, RecordingInfo(rate=rate))
    assert found(telemetry, 10) == []
    bits = 4.0 * (np.mod(time, period) > 3.0) + 1.0 * (np.mod(time, 2.7) > 1.0)
    cycles = found(changed(telemetry, actual_digital_output_bits=bits), 10)
    assert np.diff(cycles) == pytest.approx(period, abs=0.01)
    assert len(cycles) == 9
    assert cycles[0][0] == pytest.approx(53.0, abs=0.01)


CHANNELS = Channels(("a_joint", "b_joint"))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk") as disk_:
        yield disk_


def cycle(number: int) -> Cycle:
    end = number * 10**9
    return Cycle(number, end - 10**9, end, MeterReading.zero(len(CHANNELS)), 10.0)


OLD_LOG = b"cycle,ended,start,duration,total_energy,a_joint_energy\r\n1,then,5.0,1.0,20.0,3.0\r\n"


@pytest.mark.parametrize("header", [b"", b",unaccounted_s"])
def test_a_log_of_an_earlier_version_keeps_its_columns_and_gets_those_it_lacks(
    tmp_path: Path, header: bytes
) -> None:
    path = tmp_path / "cycles.csv"
    first_line, row, _ = OLD_LOG.split(b"\r\n")
    cells = b",0.5" if header else b""
    path.write_bytes(b"\r\n".join([first_line + header, row + cells, b""]))
    log = CycleLog(path)
    seen = cycle(7)
    log.append(seen, CHANNELS)
    log.append(replace(seen, reading=replace(seen.reading, unaccounted=2.5)), CHANNELS)
    assert log.problem is None
    with path.open(newline="") as file:
        first, *rows = csv.DictReader(file)
    assert list(first) == [*first_line.decode().split(","), *ADDED]
    unaccounted = "0.5" if header else ""
    assert (first["total_energy"], first["unaccounted_s"]) == ("20.0", unaccounted)
    assert [first[name] for name in ADDED[1:]] == [""] * len(ADDED[1:])
    assert [(row["cycle"], row["unaccounted_s"]) for row in rows] == [
        ("7", "0.0"),
        ("7", "2.5"),
    ]
    assert [row["total_source"] for row in rows] == ["modelled"] * 2
    assert all(None not in row for row in (first, *rows))


def test_a_file_with_other_columns_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "cycles.csv"
    path.write_text("my own notes,of Monday\n")
    log = CycleLog(path)
    log.append(cycle(1), CHANNELS)
    assert "other columns" in str(log.problem)
    assert path.read_text() == "my own notes,of Monday\n"
    path.unlink()
    log.append(cycle(2), CHANNELS)
    assert log.problem is None
    with path.open(newline="") as file:
        assert [row["cycle"] for row in csv.DictReader(file)] == ["1", "2"]


def test_cycles_of_a_full_disk_are_written_in_order_once_it_has_room(
    disk: SmallDisk,
) -> None:
    log = CycleLog(disk.path / "cycles.csv")
    log.append(cycle(1), CHANNELS)
    disk.fill()
    for number in range(2, 200):  # more than the page of the file holds
        log.append(cycle(number), CHANNELS)
    assert "No space left" in str(log.problem)
    assert (disk.path / "cycles.csv").read_bytes().endswith(b"\r\n")
    disk.empty()
    log.write()
    assert log.problem is None
    with (disk.path / "cycles.csv").open(newline="") as file:
        assert [int(row["cycle"]) for row in csv.DictReader(file)] == list(range(1, 200))
