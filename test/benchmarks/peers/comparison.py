# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""All methods on all pairs of recordings: errors, coverage of our intervals, time."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from test.benchmarks.peers.figures import Coverage, CurrentError, EnergyError, joint_rms
from test.benchmarks.peers.methods import (
    POWERS,
    SOLVERS,
    CurrentMethod,
    current_methods,
    link_torque,
    solve,
)
from test.benchmarks.peers.recordings import (
    ANOTHER_REAL,
    ANOTHER_SIMULATED,
    FRICTION_SPEED,
    Bag,
    Pair,
    Part,
    pairs,
    recorded,
    still,
    weighings,
)
from test.identification.exact_arm import write_bag
from ur_energy_model.cli.main import main
from ur_energy_model.energy.matched_model import model_of_recording
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.identification.power_structures import STANDBY
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.model_file import load_model
from ur_energy_model.papers.power_models import SingleParameter
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, concatenate
from ur_energy_model.typing import Array

OURS = "this package"
GENERIC = "generic model"
GENERIC_FILE = "generic, constants not stated"
UNTRAINED = "untrained constants"
"""Without a model of any arm: our generic models with the torque constants that the controller
states and without, and standby power, copper losses and conversion by the robot file."""
ONE_PARAMETER = "one parameter"
"""Petrichenko et al. 2024, arXiv 2411.03194, eq. 7: from the motion, without currents."""
UNTRAINED_COEFFICIENTS = np.array([STANDBY[0], 1.0, 1.0])
"""Of 1, sum R i^2 and sum k_t N qd i."""
SAME_SESSION = "simulated, same session"


def command(*arguments: str | Path) -> dict[str, Any]:
    """What `ur_energy ARGUMENTS --json` prints."""
    out = io.StringIO()
    err = io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, arguments), "--json"])
    if code != 0:
        raise UrEnergyError(err.getvalue().strip())
    content: dict[str, Any] = json.loads(out.getvalue())
    return content


@dataclass
class Results:
    """Everything that was found."""

    # By pair and method.
    currents: dict[tuple[Pair, str], CurrentError] = field(default_factory=dict)
    energies: dict[tuple[Pair, str], EnergyError] = field(default_factory=dict)
    # Of our 95 % intervals, by quantity and group.
    coverage: dict[tuple[str, str], Coverage] = field(
        default_factory=lambda: defaultdict(Coverage)
    )
    # of fits
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[str] = field(default_factory=list)  # fits that did not come about


def compare(bags: list[Bag], folder: Path) -> Results:
    """Fit and judge everything; models go into the folder."""
    by_train: dict[Bag, list[Pair]] = defaultdict(list)
    for pair in pairs(bags):
        by_train[pair.train].append(pair)
    results = Results()
    others = current_methods()
    for train, judged in by_train.items():
        file = folder / f"{train.name}.yaml"
        try:
            begin = perf_counter()
            command("identify", train.path, "--robot", train.robot, "-o", file)
            results.seconds[OURS].append(perf_counter() - begin)
            _judge_ours(file, train, judged, results)
            _weigh(file, train, weighings(bags, train), results)
        except UrEnergyError as error:
            results.refused.append(f"{OURS}, {train.name}: {error}")
        if recorded(train).moving.any(axis=0).all():
            for name, method in others.items():
                _judge_currents(name, method, train, judged, results)
        else:
            results.refused.append(
                f"{train.name}: not every joint moves, so no currents are fitted"
            )
        for name in POWERS:
            _judge_power(name, train, judged, results)
        _judge_single_parameter(train, judged, results)
        for pair in judged:
            if pair.group in (ANOTHER_REAL, ANOTHER_SIMULATED):
                _judge_without_any(pair, folder, results)
    return results


def _judge_ours(file: Path, train: Bag, judged: Sequence[Pair], results: Results) -> None:
    model = load_model(file)
    evaluated = command("evaluate", file, *(pair.judged.path for pair in judged))[
        "results"
    ]
    for pair, metrics in zip(judged, evaluated, strict=True):
        bag = pair.judged
        group = pair.group
        seen = recorded(pair.judged)
        rms, moving = (
            np.array(
                [entry["rms"] for entry in metrics[key] or [{"rms": None}] * model.dof],
                float,
            )
            for key in ("current_all", "current")
        )
        results.currents[pair, OURS] = CurrentError.of(
            rms, moving, np.ptp(seen.current, axis=0)
        )
        own = model_of_recording(model, bag.path).model
        current = seen.filtered(partial(_predicted, own, "current"))
        spread = seen.inside(partial(_predicted, own, "current_std"))
        error = np.where(seen.moving, current - seen.current, np.nan)
        for j in range(model.dof):
            results.coverage["joint current", group].add(
                error[:, j], spread[:, j], as_one=True
            )
        _judge_supply(OURS, (file,), pair, results)
        if bag.truth is not None:
            _friction(model, bag, group, results)
    if train.truth is not None:
        _friction(model, train, SAME_SESSION, results)
        constant = np.array([joint.torque_constant for joint in model.joints])
        std = np.array([joint.std["torque_constant"] for joint in model.joints])
        error = constant - train.truth.torque_constant
        results.coverage["torque constant", SAME_SESSION].add(error, std)


def _predicted(model: EnergyModel, quantity: str, part: Part) -> Array:
    """`current` of a part from its motion, or `current_std`."""
    motion = part.motion
    warmth = motion.temperature if np.isfinite(motion.temperature).all() else None
    powers = model.from_link_torque(
        part.link_torque, motion.qd, motion.qdd, temperature=warmth
    )
    return np.asarray(getattr(powers, quantity))


def _judge_supply(
    name: str,
    model: tuple[str | Path, ...],
    pair: Pair,
    results: Results,
    bag: Path | None = None,
) -> None:
    """Modelled energy of `estimate`; of motion from its power above standby, which may change.

    `model` are the arguments that name it, `bag` another bag of the judged recording.
    """
    rows = recorded(pair.judged).supply
    if rows is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        powers = Path(folder) / "powers.csv"
        found = command("estimate", *model, bag or pair.judged.path, "--csv", powers)
        if found["bus_energy"] is None:
            return
        names = ("timestamp", "model_power", "standby_power")
        with powers.open(newline="") as stream:
            table = [
                [float(row[name]) for name in names] for row in csv.DictReader(stream)
            ]
    time, modelled, standby = np.array(table).T
    above = np.interp(rows.time, time, modelled - standby)
    total = found["total"]
    error = total["model_energy"] - found["bus_energy"]
    std = total["model_energy_std"]
    motion = EnergyError.of(rows.time, above, rows.power, still(rows)).motion
    percent = 100 / found["bus_energy"]
    results.energies[pair, name] = EnergyError(percent * error, motion, percent * std)
    if name == OURS:
        results.coverage["supply energy", pair.group].add(error, std)


def _judge_without_any(pair: Pair, folder: Path, results: Results) -> None:
    """What the judged recording gives without a model of any arm."""
    judged = pair.judged
    known = [(at, name) for at, name in results.energies if at.judged == judged]
    for name in (GENERIC, GENERIC_FILE, UNTRAINED):
        earlier = next((at for at, own in known if own == name and at != pair), None)
        if earlier is not None:  # the same for every fitted recording
            results.energies[pair, name] = results.energies[earlier, name]
    if (pair, GENERIC) in results.energies or recorded(judged).supply is None:
        return
    _judge_supply(GENERIC, ("--robot", judged.robot), pair, results)
    bag = folder / f"{judged.name}_without_target_current"
    if not bag.exists():
        samples = concatenate(list(iterate_bag(judged.path)))
        columns = {
            name: values
            for name, values in samples.columns.items()
            if name != "target_current"
        }
        write_bag(bag, Telemetry(samples.time, columns, samples.info))
    _judge_supply(GENERIC_FILE, ("--robot", judged.robot), pair, results, bag)
    rows = recorded(judged).supply
    assert rows is not None
    untrained = (
        POWERS["three coefficients"](rows, recorded(judged).robot)
        @ UNTRAINED_COEFFICIENTS
    )
    _judge_powers(UNTRAINED, untrained, pair, results)


def _friction(model: EnergyModel, bag: Bag, group: str, results: Results) -> None:
    assert bag.truth is not None
    value, std = friction_at(
        model, FRICTION_SPEED, bag.truth.temperature, same_session=group == SAME_SESSION
    )
    quantity = f"friction at {FRICTION_SPEED:g} rad/s"
    results.coverage[quantity, group].add(value - bag.truth.friction, std)


def friction_at(
    model: EnergyModel, speed: float, temperature: Array, *, same_session: bool
) -> tuple[Array, Array]:
    """No-load friction, mean of both directions, and its standard deviation, motor side [n], N m.

    At a speed of the joints [rad/s] and their temperatures [n], degC. That of another
    session than the fitted one is less certain by what friction varies between sessions.
    """
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    bank = FrictionBank([joint.friction for joint in model.joints], ratio)
    qd = np.array([speed, -speed])[:, None] * np.ones(model.dof)
    point = (qd, np.zeros_like(qd), np.tile(temperature, (2, 1)))
    terms = bank.regressors(*point)
    torque = bank.torque(*point)
    value = 0.5 * (torque[0] - torque[1])
    variance = np.full(model.dof, np.nan)
    for j, joint in enumerate(model.joints):
        if joint.current_covariance.size:
            # It is of (1/k_t, parameters/k_t): torque = k_t (terms @ parameters/k_t).
            mean = 0.5 * (terms[j][0] - terms[j][1])
            row = joint.torque_constant * np.concatenate([[-value[j]], mean])
            variance[j] = row @ joint.current_covariance @ row
    if not same_session:
        variance += np.square(model.sessions.friction_of(model.dof) * value)
    return value, np.sqrt(variance)


def _weigh(file: Path, train: Bag, loaded: Iterable[Bag], results: Results) -> None:
    for bag in loaded:
        assert bag.payload is not None
        try:
            found = command("payload", file, bag.path)
        except UrEnergyError as error:
            results.refused.append(f"payload, {train.name}: {error}")
            continue
        coverage = results.coverage["payload", Pair(train, bag).group]
        coverage.add(found["mass"] - bag.payload, found["std"])


def _judge_currents(
    name: str, method: CurrentMethod, train: Bag, judged: Sequence[Pair], results: Results
) -> None:
    begin = perf_counter()
    recordings = [recorded(pair.judged) for pair in judged]
    try:
        predictions = method(recorded(train), recordings)
    except (OSError, subprocess.SubprocessError) as error:
        results.refused.append(f"{name}, {train.name}: {error}")
        return
    results.seconds[f"{name}, currents"].append(perf_counter() - begin)
    for pair, seen, predicted in zip(judged, recordings, predictions, strict=True):
        if predicted is not None:
            residual = predicted - seen.current
            results.currents[pair, name] = CurrentError.of(
                joint_rms(residual),
                joint_rms(residual, seen.moving),
                np.ptp(seen.current, axis=0),
            )


def _judge_power(name: str, train: Bag, judged: Iterable[Pair], results: Results) -> None:
    fitted = recorded(train).supply
    robot = recorded(train).robot
    if fitted is None:
        return
    begin = perf_counter()
    found = SOLVERS.get(name, solve)(POWERS[name](fitted, robot), fitted.power)
    results.seconds[f"{name}, power"].append(perf_counter() - begin)
    for pair in judged:
        rows = recorded(pair.judged).supply
        if rows is not None:
            _judge_powers(name, POWERS[name](rows, robot) @ found, pair, results)


def _judge_single_parameter(train: Bag, judged: Iterable[Pair], results: Results) -> None:
    """The power by the torque of the links and one electrical parameter, without currents."""
    fitted = recorded(train).supply
    if fitted is None or not recorded(train).parts:
        return
    begin = perf_counter()
    torque = link_torque(recorded(train), fitted)
    model = SingleParameter.fitted(torque, fitted.qd, fitted.power)
    results.seconds[f"{ONE_PARAMETER}, power"].append(perf_counter() - begin)
    for pair in judged:
        seen = recorded(pair.judged)
        if seen.supply is not None and seen.parts:
            modelled = model.power(link_torque(seen, seen.supply), seen.supply.qd)
            _judge_powers(ONE_PARAMETER, modelled, pair, results)


def _judge_powers(name: str, modelled: Array, pair: Pair, results: Results) -> None:
    """Powers of another method [samples], W, with the standby power of the judged session."""
    rows = recorded(pair.judged).supply
    assert rows is not None
    rest = still(rows)
    if rest.any():  # anchored as ours
        modelled = modelled + (rows.power - modelled)[rest].mean()
    results.energies[pair, name] = EnergyError.of(
        rows.time, np.maximum(modelled, 0.0), rows.power, rest
    )
