# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The saving of a changed program from ordinary production, with intervals that cover it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from test.energy.work_cycles import LIFT, PICK, PLACE, ROBOT, pick_and_place
from test.identification.exact_arm import write_bag
from test.truth import first_fast
from ur_energy_model.cli.main import main
from ur_energy_model.plant.before_after import SAME_SESSION, ProductionSaving, compare
from ur_energy_model.plant.production import MEASURED, CyclePart, Production
from ur_energy_model.plant.recorded_production import (
    recorded_production,
    recorded_productions,
)
from ur_energy_model.simulation.arm_options import ArmOptions
from ur_energy_model.simulation.simulated_arm import SimulatedArm, record_arm
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.trajectory.motions import Chain, move
from ur_energy_model.typing import Array

# W, s
STANDBY = 30.0
PERIOD = 10.0
POINT = np.zeros(6)
THERE = np.full(6, 0.5)
DAY = 86_400.0


class Session(NamedTuple):
    """What the cycles of a session have in common."""

    standby: float  # W
    friction: float  # relative


USUAL = Session(STANDBY, 1.0)


def production(
    random: np.random.Generator,
    motion: float,
    session: Session = USUAL,
    *,
    cycles: int = 6,
    begin: float | None = None,
    alike: bool = False,
) -> Production:
    """Cycles of a motion [J], 5 s of 10 s; with `alike`, a move and a rest never change."""
    scatter = 1.0
    duration = PERIOD + 0.01 * random.standard_normal(cycles)
    moved = session.friction * motion
    energy = session.standby * duration + moved + scatter * random.standard_normal(cycles)
    rest = session.standby + 0.1 * random.standard_normal(cycles)
    power = (
        session.standby + 30.0 * session.friction + 0.3 * random.standard_normal(cycles)
    )
    parts = [
        CyclePart(POINT, POINT, 2.5, rest, moves=False),
        CyclePart(POINT, THERE, 2.5, power, moves=True),
    ]
    return Production(
        "recording",
        energy,
        duration,
        parts=parts if alike else (),
        idle=session.standby,
        begin=begin,
        end=None if begin is None else begin + cycles * PERIOD,
    )


def drawn_session(random: np.random.Generator) -> Session:
    return Session(
        STANDBY + 1.8 * random.standard_normal(), 1.0 + 0.05 * random.standard_normal()
    )


CHANGED = 120.0
SAME = 150.0
"""Energy of motion after a change, and before it [J]."""


@pytest.mark.parametrize("kind", ["one session", "several sessions", "another day"])
@pytest.mark.parametrize("counts", [(6, 8), (2, 3), (1, 6)])
def test_the_interval_covers_the_saving_and_no_change_is_no_saving(
    kind: str, counts: tuple[int, int]
) -> None:
    random = np.random.default_rng(5)
    inside = 0
    proven = 0
    runs = 300
    for _ in range(runs):
        found: list[ProductionSaving] = []
        for motion in (CHANGED, SAME):
            sides: list[list[Production]] = []
            for side, (count, joules) in enumerate(
                zip(counts, (SAME, motion), strict=True)
            ):
                number = 3 if kind == "several sessions" else 1
                days = DAY * (number * side + np.arange(number))
                many = kind != "one session"
                sides.append(
                    [
                        production(
                            random,
                            joules,
                            drawn_session(random) if many else USUAL,
                            cycles=count,
                            begin=float(day) if many else 600.0 * side,
                        )
                        for day in days
                    ]
                )
            found.append(compare(*sides))
        low, high = found[0].interval
        inside += low < SAME - CHANGED < high
        proven += found[1].proven
    assert 0.90 <= inside / runs <= 0.995
    assert proven / runs <= 0.05


def test_what_is_alike_on_both_sides_shows_another_session() -> None:
    """Without it the standby and the friction of another session would pass for a saving."""
    random = np.random.default_rng(6)
    proven = 0
    for _ in range(200):
        before = production(random, SAME, drawn_session(random), alike=True)
        after = production(random, SAME, drawn_session(random), alike=True)
        proven += compare([before], [after]).proven
    assert proven / 200 <= 0.05
    first = production(random, SAME, alike=True)
    cheaper = compare([first], [production(random, CHANGED, alike=True)])
    assert cheaper.proven
    assert cheaper.alike_power == pytest.approx(0.0, abs=0.5)
    other = compare([first], [production(random, SAME, Session(26.0, 1.0), alike=True)])
    assert not other.proven
    assert other.saving == pytest.approx(40.0, abs=3.0)
    assert other.alike_power == pytest.approx(-4.0, abs=0.5)


def test_several_recordings_of_one_session_are_one() -> None:
    random = np.random.default_rng(7)
    pause = SAME_SESSION / 2.0
    before = [production(random, SAME, begin=k * pause) for k in range(3)]
    after = production(random, CHANGED, begin=3 * pause)
    joined = replace(
        before[0],
        energy=np.concatenate([each.energy for each in before]),
        duration=np.concatenate([each.duration for each in before]),
        end=before[-1].end,
    )
    assert compare(before, [after]).interval == compare([joined], [after]).interval


def test_other_changes_are_reported_and_another_arm_proves_nothing() -> None:
    usual = replace(
        production(np.random.default_rng(3), 150.0, cycles=5),
        serial="20195500001",
        points=np.zeros((6, 6)),
        payload=(0.0, 1.5),
        temperature=28.0,
        scaling=1.0,
    )
    changed: dict[str, Any] = {
        "serial": "20195500002",
        "points": np.zeros((7, 6)),
        "payload": (0.0, 2.5),
        "temperature": 35.0,
        "scaling": 0.8,
        "duration": usual.duration + 1.0,
    }
    assert compare([usual], [usual]).differences == ()
    for name, value in changed.items():
        assert len(compare([usual], [replace(usual, **{name: value})]).differences) == 1
    points = np.arange(18.0).reshape(3, 6)
    turned = [replace(usual, points=np.roll(points, turn, axis=0)) for turn in range(3)]
    assert all(compare([turned[0]], [each]).differences == () for each in turned)
    cheap = replace(usual, energy=usual.energy - 150.0)
    assert compare([usual], [cheap]).proven
    assert not compare([usual], [replace(cheap, serial="20195500002")]).proven
    quick = replace(usual, energy=0.5 * usual.energy, duration=0.5 * usual.duration)
    assert compare([usual], [quick]).proven
    # two cycles before may have been found as one
    half = replace(quick, points=np.zeros((3, 6)))
    assert np.isnan(compare([usual], [half]).interval).all()


def test_one_cycle_on_each_side_proves_nothing() -> None:
    random = np.random.default_rng(4)
    sides = [[production(random, joules, cycles=1)] for joules in (SAME, CHANGED)]
    found = compare(*sides)
    assert not found.proven
    assert np.isnan(found.interval).all()
    assert found.saving == pytest.approx(SAME - CHANGED, abs=6.0)


# Recordings of a simulated arm.


def two_places(speed: float, acceleration: float) -> Chain:
    """From a point to two places in turns; the arm hardly rests."""
    away = np.array([0.3, 0.0, 0.0, 0.0, 0.0, -0.3])
    points = [PICK + LIFT]
    for at in (PLACE, PLACE + away):
        points += [PICK, PICK + LIFT, at + LIFT, at, at + LIFT, PICK + LIFT]
    rests = [0.11, 0.0, 0.0, 0.0, 0.0, 0.0] * 2
    return Chain(
        [
            move(start, end, speed, acceleration, rest)
            for start, end, rest in zip(points[:-1], points[1:], rests, strict=True)
        ]
    )


class Run(NamedTuple):
    """A recording of a simulated arm that repeats a cycle."""

    telemetry: Telemetry
    duration: float  # of a cycle [s]
    energy: float  # of a cycle at the bus, by the simulator [J]


@cache
def run(
    kind: str, cycles: int = 4, seed: int = 5, session: int = 0, rate: float = 500.0
) -> Run:
    """The bus energy is the simulator's, of whole cycles after the first one."""
    motion = {
        "slow": two_places(0.47, 1.2),
        "quick": two_places(0.50, 1.3),
        "hasty": pick_and_place(2.5, 5.0, wait=1.6),
        "calm": pick_and_place(1.2, 5.0, wait=1.6),
    }[kind]
    options = ArmOptions(session=session)
    robot = replace(ROBOT, rate=rate)
    arm = SimulatedArm(robot, motion=motion, seed=seed, options=options)
    parts = []
    truth = []
    for seconds in (1.0 * motion.duration, (cycles - 1.0) * motion.duration, 0.6):
        parts.append(record_arm(arm, seconds))
        truth.append(arm.energies().bus)
    columns = {
        name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns
    }
    time = np.concatenate([part.time for part in parts])
    energy = (truth[1] - truth[0]) / (cycles - 1.0)
    return Run(Telemetry(time, columns, parts[0].info), motion.duration, energy)


def bag_of(
    folder: Path, name: str, telemetry: Telemetry, **columns: Array | None
) -> Path:
    """The recording as a bag, with other columns, or without those that are None."""
    changed = {**telemetry.columns, **columns}
    kept = {name: values for name, values in changed.items() if values is not None}
    return write_bag(folder / name, replace(telemetry, columns=kept))


def trapezoids(telemetry: Telemetry, cycles: int, duration: float) -> float:
    """Mean energy of the last cycles of a recording from voltage and current alone [J]."""
    watts = telemetry["actual_robot_voltage"] * telemetry["actual_robot_current"]
    end = telemetry.time[-1] - 0.4
    inside = (telemetry.time >= end - cycles * duration) & (telemetry.time <= end)
    return float(np.trapezoid(watts[inside], telemetry.time[inside])) / cycles


def printed_json(
    capsys: pytest.CaptureFixture[str], before: list[Path], after: list[Path]
) -> dict[str, Any]:
    options = ["--before", *map(str, before), "--after", *map(str, after)]
    assert main(["optimize", *options, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.truth
def test_a_small_measured_saving_is_found_and_proven(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """4 % of a cycle in which the arm rests for 54 samples at each of two points."""
    runs = [run("slow"), run("quick")]
    bags = [bag_of(tmp_path, str(k), each.telemetry) for k, each in enumerate(runs)]
    found = printed_json(capsys, bags[:1], bags[1:])
    true = runs[0].energy - runs[1].energy
    alone = [trapezoids(each.telemetry, 3, each.duration) for each in runs]
    assert 0.02 < true / runs[0].energy < 0.06
    assert found["saving"] == pytest.approx(true, abs=1.5)
    assert found["saving"] == pytest.approx(alone[0] - alone[1], abs=1.5)
    assert found["interval"][0] < true < found["interval"][1]
    assert found["proven"]
    assert found["compared"] == "measured"
    assert found["total_source"] == {"before": "measured", "after": "measured"}


@pytest.mark.parametrize(
    ("rate", "step", "cycles"),
    first_fast(
        [(125.0, 2, 4), (125.0, 2, 7), (500.0, 10, 7), (500.0, 1, 7), (500.0, 100, 7)]
    ),
)
def test_any_sample_rate(tmp_path: Path, rate: float, step: int, cycles: int) -> None:
    sides = []
    energies = []
    for kind in ("hasty", "calm"):
        made = run(kind, cycles, rate=rate)
        energies.append(made.energy)
        telemetry = made.telemetry
        thinned = telemetry.select(np.arange(len(telemetry)) % step == 0)
        rated = replace(thinned, info=replace(thinned.info, rate=rate / step), gaps=())
        sides.append([recorded_production(bag_of(tmp_path, kind, rated))])
    found = compare(*sides)
    true = energies[0] - energies[1]
    assert found.interval[0] < true < found.interval[1]
    assert found.saving == pytest.approx(true, abs=1.0 if step < 100 else 15.0)


@pytest.mark.truth
def test_another_session_of_the_arm_is_no_saving(tmp_path: Path) -> None:
    """The same program, in sessions whose standby and friction differ."""
    pair = [run("calm", 4, session=number, rate=125.0) for number in (1, 4)]
    found = [
        recorded_production(bag_of(tmp_path, str(k), each.telemetry))
        for k, each in enumerate(pair)
    ]
    for before, after in (found, found[::-1]):
        comparison = compare([before], [after])
        true = pair[0].energy - pair[1].energy
        assert abs(comparison.saving) == pytest.approx(abs(true), abs=1.0)
        assert not comparison.proven
        assert comparison.interval[0] < 0.0 < comparison.interval[1]


@pytest.mark.truth
@pytest.mark.parametrize("apart", [DAY, 600.0])
def test_recordings_of_one_day_are_one_session(tmp_path: Path, apart: float) -> None:
    """On another day nothing shows the friction of moves that all changed."""
    sides = []
    for number, kind in enumerate(("slow", "quick")):
        telemetry = run(kind).telemetry
        since = telemetry.time - telemetry.time[0] + number * apart
        stamp = 1_780_000_000 * 10**9 + np.round(1e9 * since).astype(np.int64)
        bag = bag_of(tmp_path, kind, replace(telemetry, stamp=stamp))
        sides.append([recorded_production(bag)])
    found = compare(*sides)
    low, high = found.interval
    true = run("slow").energy - run("quick").energy
    assert low < true < high
    assert any("different sessions" in note for note in found.notes) == (apart == DAY)
    assert (high - low > 0.04 * found.energy) == (apart == DAY)


@pytest.mark.truth
def test_cycles_with_an_outage_are_left_out(tmp_path: Path) -> None:
    """Samples are missing in one cycle, the bus power in another."""
    whole = run("calm", 5)
    telemetry = whole.telemetry
    since = telemetry.time - telemetry.time[0]
    current = telemetry["actual_robot_current"].copy()
    current[(since > 2.4 * whole.duration) & (since < 2.45 * whole.duration)] = np.nan
    unknown = replace(
        telemetry, columns={**telemetry.columns, "actual_robot_current": current}
    )
    waiting = 1.95 * whole.duration  # the arm rests at the end of its cycle
    without = unknown.select((since < waiting - 0.3) | (since > waiting))
    found = recorded_production(bag_of(tmp_path, "gaps", without))
    usual = recorded_production(bag_of(tmp_path, "whole", telemetry))
    assert len(found.energy) == len(usual.energy) - 2
    assert found.left_out == 2
    assert found.energy.mean() == pytest.approx(usual.energy.mean(), rel=0.002)


@pytest.mark.truth
@pytest.mark.parametrize("which", [[True, False], [True, True]])
def test_without_bus_power_on_a_side_the_model_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], which: tuple[bool, bool]
) -> None:
    bags = []
    for missing, kind in zip(which, ("hasty", "calm"), strict=True):
        none = (
            {"actual_robot_voltage": None, "actual_robot_current": None}
            if missing
            else {}
        )
        bags.append(bag_of(tmp_path, kind, run(kind, 7).telemetry, **none))
    found = printed_json(capsys, bags[:1], bags[1:])
    true = run("hasty", 7).energy - run("calm", 7).energy
    assert found["compared"] == "modelled"
    after = "modelled" if which[1] else "measured"
    assert found["total_source"] == {"before": "modelled", "after": after}
    assert found["interval"][0] < true < found["interval"][1]
    half = 0.5 * (found["interval"][1] - found["interval"][0])
    measured = [[recorded_production(bag_of(tmp_path, f"{kind} 2", run(kind, 7).telemetry))]
                for kind in ("hasty", "calm")]  # fmt: skip
    low, high = compare(*measured).interval
    assert half > (high - low) / 2.0
    assert measured[0][0].total_source == MEASURED


@pytest.mark.truth
def test_a_meter_that_always_shows_zero_measures_nothing(tmp_path: Path) -> None:
    """Some simulators report it while the arm works."""
    telemetry = run("calm", 5).telemetry
    zero = np.zeros(len(telemetry))
    paths = [
        bag_of(
            tmp_path,
            name,
            telemetry,
            actual_robot_voltage=zero + 48.0,
            actual_robot_current=zero,
        )
        for name in ("one", "other")
    ]
    before, after = recorded_productions(paths[:1], paths[1:])
    assert before[0].total_source.name == "modelled"
    assert before[0].energy.mean() > 50.0
    assert compare(before, after).saving == pytest.approx(0.0, abs=1e-9)
