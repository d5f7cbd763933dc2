"""Our own side, by the command line as users have it, and the intervals that our model states."""

from __future__ import annotations

import csv
import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np

from test.benchmarks.peers.recorded import Part
from ur_energy_model.cli.main import main
from ur_energy_model.errors import UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.typing import Array


class CommandError(UrEnergyError):
    """A command ended with an error; its words are the message."""


def command(*arguments: str | Path) -> dict[str, Any]:
    """What `ur_energy ARGUMENTS --json` prints.

    Raises:
        CommandError: it did not end well.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*map(str, arguments), "--json"])
    if code != 0:
        raise CommandError(err.getvalue().strip())
    content: dict[str, Any] = json.loads(out.getvalue())
    return content


def estimated(model: Path, bag: Path, file: Path) -> tuple[dict[str, Any], Array, Array]:
    """`estimate --json`, and over time [samples], s, the power above standby [samples], W.

    Standby is left out because it may change on the way, as more is known of the session.

    Args:
        model: model file.
        bag: recording.
        file: where the CSV file of powers goes.
    """
    found = command("estimate", model, bag, "--csv", file)
    names = ("timestamp", "total_power", "standby_power")
    with file.open(newline="") as stream:
        rows = [[float(row[name]) for name in names] for row in csv.DictReader(stream)]
    time, total, standby = np.array(rows).T
    return found, time, total - standby


def current_std(model: EnergyModel, part: Part) -> Array:
    """Standard deviation of the currents predicted for a part [samples, n], A.

    The model's own statement where it makes one; else what follows from the covariance of its
    coefficients, its sessions' friction spread and its residual.
    """
    motion = part.motion
    temperature = motion.temperature if np.isfinite(motion.temperature).all() else None
    link = part.link_torque
    prediction = model.from_link_torque(
        link, motion.qd, motion.qdd, temperature=temperature, std=True
    )
    stated = getattr(prediction, "current_std", None)
    if stated is not None:
        return np.asarray(stated)
    inertia = np.array([joint.reflected_inertia for joint in model.joints])
    load = link + inertia * motion.qdd
    bank, ratio = _bank(model)
    terms = bank.regressors(motion.qd, load, temperature)
    friction = bank.torque(motion.qd, load, temperature)
    variance = np.empty_like(motion.qd)
    for j, joint in enumerate(model.joints):
        rows = np.column_stack([load[:, j] / ratio[j], terms[j]])
        variance[:, j] = _variance(rows, joint.current_covariance) + joint.current_residual**2
        variance[:, j] += (_friction_spread(model)[j] * friction[:, j] / joint.torque_constant) ** 2
    return np.asarray(np.sqrt(variance))


def friction_at(
    model: EnergyModel, speed: float, temperature: Array, *, same_session: bool
) -> tuple[Array, Array]:
    """No-load friction, mean of both directions, and its standard deviation, motor side [n], N m.

    Args:
        model: of n joints.
        speed: joint side, rad/s.
        temperature: of the joints [n], degC.
        same_session: whether it is asked for the session that was fitted; another one's friction
            is less well known by what friction varies between sessions.
    """
    bank, _ = _bank(model)
    qd = np.array([speed, -speed])[:, None] * np.ones(model.dof)
    warmth = np.tile(temperature, (2, 1))
    terms = bank.regressors(qd, np.zeros_like(qd), warmth)
    torque = bank.torque(qd, np.zeros_like(qd), warmth)
    value = 0.5 * (torque[0] - torque[1])
    variance = np.empty(model.dof)
    for j, joint in enumerate(model.joints):
        # The covariance is of (1/k_t, parameters/k_t): torque = k_t (terms @ parameters/k_t).
        mean = 0.5 * (terms[j][0] - terms[j][1])
        row = joint.torque_constant * np.concatenate([[-value[j]], mean])
        variance[j] = _variance(row[None], joint.current_covariance)[0]
    if not same_session:
        variance += np.square(_friction_spread(model) * value)
    return value, np.sqrt(variance)


def _bank(model: EnergyModel) -> tuple[FrictionBank, Array]:
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    return FrictionBank([joint.friction for joint in model.joints], ratio), ratio


def _variance(rows: Array, covariance: Array) -> Array:
    """Of rows @ coefficients [samples]; NaN where no covariance was stated."""
    if not covariance.size:
        return np.full(len(rows), np.nan)
    return np.asarray(np.einsum("sk,kl,sl->s", rows, covariance, rows))


def _friction_spread(model: EnergyModel) -> Array:
    """Relative standard deviation of friction between sessions [n], as far as the model has one."""
    sessions = getattr(model, "sessions", None)
    return np.zeros(model.dof) if sessions is None else np.asarray(sessions.friction_of(model.dof))
