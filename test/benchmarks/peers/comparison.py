"""All methods on all pairs of recordings: errors, coverage of our intervals, time."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np

from test.benchmarks.peers.cases import FRICTION_SPEED, Bag, Pair, pairs, weighings
from test.benchmarks.peers.coverage import Coverage
from test.benchmarks.peers.figaroh_peer import Figaroh, python_with_figaroh
from test.benchmarks.peers.figures import CurrentError, EnergyError, joint_rms
from test.benchmarks.peers.methods import (
    ECBOT_CURRENTS,
    ECBOT_POWER,
    THREE,
    TWENTY_LINES,
    BaseParameters,
)
from test.benchmarks.peers.ours import command, current_std, estimated, friction_at
from test.benchmarks.peers.recorded import Recorded, recorded, still
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import load_model
from ur_energy_model.typing import Array

OURS = "this package"
SAME_SESSION = "simulated, same session"


class CurrentMethod(Protocol):
    """Currents of recordings from one that was fitted."""

    @property
    def name(self) -> str:
        """For the tables."""
        ...

    def predict(self, train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        """Currents [samples, n] as `Recorded.current` has them; None where it does not apply."""
        ...


def current_methods() -> tuple[CurrentMethod, ...]:
    """Those of others; figaroh where it is installed, else base parameters in its place."""
    python = python_with_figaroh()
    base = BaseParameters() if python is None else Figaroh(python)
    return TWENTY_LINES, ECBOT_CURRENTS, base


@dataclass
class Results:
    """Everything that was found.

    Attributes:
        currents, energies: by pair and method.
        supply_covered: whether our interval holds the energy at the supply, by pair.
        coverage: of our 95 % intervals, by quantity and group.
        seconds: of every fit, by method.
        refused: fits that did not come about, a line each.
    """

    currents: dict[tuple[Pair, str], CurrentError] = field(default_factory=dict)
    energies: dict[tuple[Pair, str], EnergyError] = field(default_factory=dict)
    supply_covered: dict[Pair, bool] = field(default_factory=dict)
    coverage: dict[tuple[str, str], Coverage] = field(default_factory=lambda: defaultdict(Coverage))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: list[str] = field(default_factory=list)


def compare(bags: list[Bag], folder: Path) -> Results:
    """Fit and judge everything; models go into the folder."""
    by_train: dict[Bag, list[Pair]] = defaultdict(list)
    for pair in pairs(bags):
        by_train[pair.train].append(pair)
    results, others = Results(), current_methods()
    for train, judged in by_train.items():
        if not _read(train).moving.any(axis=0).all():
            results.refused.append(f"{train.name}: not every joint moves, so none is fitted to it")
            continue
        file = folder / f"{train.name}.yaml"
        try:
            begin = perf_counter()
            command("identify", train.path, "--robot", train.robot, "-o", file)
            results.seconds[OURS].append(perf_counter() - begin)
            _judge_ours(file, train, judged, results)
            _weigh(file, train, weighings(bags, train), results)
        except UrEnergyError as error:
            results.refused.append(f"{OURS}, {train.name}: {error}")
        for method in others:
            _judge_currents(method, train, judged, results)
        for power in (THREE, ECBOT_POWER):
            _judge_power(power, train, judged, results)
    return results


def _read(bag: Bag) -> Recorded:
    return recorded(bag.path, bag.robot)


def _judge_ours(file: Path, train: Bag, judged: Sequence[Pair], results: Results) -> None:
    model = load_model(file)
    evaluated = command("evaluate", file, *(pair.judged.path for pair in judged))["results"]
    for pair, metrics in zip(judged, evaluated, strict=True):
        bag, group = pair.judged, pair.group
        seen = _read(bag)
        rms, moving = (_rms(metrics[key], model.dof) for key in ("current_all", "current"))
        results.currents[pair, OURS] = CurrentError.of(rms, moving, np.ptp(seen.current, axis=0))
        predicted = _predicted(model, seen)
        spread = np.concatenate(
            [current_std(model, part)[seen.narrow.inside(part.motion)] for part in seen.parts]
        )
        error = np.where(seen.moving, predicted - seen.current, np.nan)
        for j in range(model.dof):
            results.coverage["joint current", group].add(error[:, j], spread[:, j], as_one=True)
        _judge_supply(file, pair, results)
        if bag.truth is not None:
            _friction(model, bag, group, results)
    if train.truth is not None:
        _friction(model, train, SAME_SESSION, results)
        constant = np.array([joint.torque_constant for joint in model.joints])
        std = np.array([joint.std["torque_constant"] for joint in model.joints])
        error = constant - train.truth.torque_constant
        results.coverage["torque constant", SAME_SESSION].add(error, std)


def _judge_supply(file: Path, pair: Pair, results: Results) -> None:
    rows = _read(pair.judged).supply
    if rows is None:
        return
    found, time, above = estimated(file, pair.judged.path, file.with_suffix(".csv"))
    if found["bus_energy"] is None:
        return
    coverage = Coverage()
    stated = found["total"]
    error = stated["supply_energy"] - found["bus_energy"]
    of_motion = EnergyError.of(
        rows.time, np.interp(rows.time, time, above), rows.power, still(rows)
    ).motion
    results.energies[pair, OURS] = EnergyError(100 * error / found["bus_energy"], of_motion)
    for count in (coverage, results.coverage["supply energy", pair.group]):
        count.add(error, stated["supply_energy_std"])
    results.supply_covered[pair] = coverage.share == 1.0


def _friction(model: EnergyModel, bag: Bag, group: str, results: Results) -> None:
    assert bag.truth is not None
    value, std = friction_at(
        model, FRICTION_SPEED, bag.truth.temperature, same_session=group == SAME_SESSION
    )
    quantity = f"friction at {FRICTION_SPEED:g} rad/s"
    results.coverage[quantity, group].add(value - bag.truth.friction, std)


def _weigh(file: Path, train: Bag, loaded: Iterable[Bag], results: Results) -> None:
    for bag in loaded:
        assert bag.payload is not None
        group = Pair(train, bag).group
        try:
            found = command("payload", file, bag.path)
        except UrEnergyError as error:
            results.refused.append(f"payload, {train.name}: {error}")
            continue
        results.coverage["payload", group].add(found["mass"] - bag.payload, found["std"])


def _judge_currents(
    method: CurrentMethod, train: Bag, judged: Sequence[Pair], results: Results
) -> None:
    begin = perf_counter()
    recordings = [_read(pair.judged) for pair in judged]
    try:
        predictions = method.predict(_read(train), recordings)
    except (OSError, subprocess.SubprocessError) as error:
        results.refused.append(f"{method.name}, {train.name}: {error}")
        return
    results.seconds[f"{method.name}, currents"].append(perf_counter() - begin)
    for pair, seen, predicted in zip(judged, recordings, predictions, strict=True):
        if predicted is None:
            continue
        residual = predicted - seen.current
        results.currents[pair, method.name] = CurrentError.of(
            joint_rms(residual), joint_rms(residual, seen.moving), np.ptp(seen.current, axis=0)
        )


def _judge_power(power: Any, train: Bag, judged: Iterable[Pair], results: Results) -> None:
    fitted, robot = _read(train).supply, _read(train).robot
    if fitted is None:
        return
    begin = perf_counter()
    found = power.fit(fitted, robot)
    results.seconds[f"{power.name}, power"].append(perf_counter() - begin)
    for pair in judged:
        rows = _read(pair.judged).supply
        if rows is not None:
            modelled = power.power(found, rows, robot)
            results.energies[pair, power.name] = EnergyError.of(
                rows.time, modelled, rows.power, still(rows)
            )


def _predicted(model: EnergyModel, seen: Recorded) -> Array:
    """Currents of our model, filtered as the measured ones are [samples, n], A."""

    def current(part: Any) -> Array:
        motion = part.motion
        warmth = motion.temperature if np.isfinite(motion.temperature).all() else None
        prediction = model.from_link_torque(
            part.link_torque, motion.qd, motion.qdd, temperature=warmth, std=False
        )
        return np.asarray(prediction.current)

    return seen.filtered(current)


def _rms(entries: list[dict[str, Any]] | None, n: int) -> Array:
    if entries is None:
        return np.full(n, np.nan)
    return np.array([np.nan if e["rms"] is None else e["rms"] for e in entries])
