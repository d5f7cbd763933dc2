"""Protocol s2, Heredia et al., EcBot: sinusoids and the black-box power model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ur_energy_model.experiment.periodic_motion import RepeatedMotion
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.trajectory.motions import Sinusoids

_OPEN = np.array([0.0, -np.pi / 2, np.pi / 3, -np.pi / 2, -np.pi / 4, 0.0])
"""Joint positions with clearance on all sides for every arm [rad]; at the home position the hand of
a UR5 is too close to its forearm for sinusoids."""


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Fit the black-box and the physical power model to sinusoids; test on others."""
    bags = [
        session.record(name, session.first_safe(_sinusoids(session, factor), session.seed + offset))
        for name, factor, offset in (("training", 1.0, 0), ("testing", 0.8, 1))
    ]
    rows = []
    for kind, label in (("ecbot", "free model"), ("physical", "physical model")):
        found = identify(
            bags[:1],
            session.robot,
            validate=bags[1:],
            options=IdentificationOptions(power_model=kind),
            progress=session.progress,
        )
        save_model(found.model, session.folder / f"model_{kind}.yaml")
        for part, metrics in (("train", found.fit[0]), ("test", found.validation[0])):
            power = metrics.power or {}
            here = [power.get(key) for key in ("rmse", "rmse_percent", "r2")]
            theirs = [
                f"{arm} {' '.join(str(value) for value in published[arm][part])}"
                for arm in ("ur3e", "ur10e")
            ]
            rows.append(
                Row(
                    f"power {part}, {label}: RMSE [W], [% of range], R2",
                    "; ".join(theirs) if kind == "ecbot" else None,
                    here,
                )
            )
    return session.finish("s2", published, rows)


def _sinusoids(session: ProtocolRun, frequency_factor: float) -> Callable[[int], RepeatedMotion]:
    """One minute of seeded sinusoids of all joints around an open position."""
    robot = session.robot

    def motion(seed: int) -> RepeatedMotion:
        random = np.random.default_rng(seed)
        frequency = frequency_factor * random.permutation(np.linspace(0.08, 0.21, robot.dof))
        speed = 2 * np.pi * frequency
        amplitude = np.minimum.reduce([np.full(robot.dof, 0.6), 0.4 * robot.max_velocity / speed])
        centre = _OPEN + random.uniform(-0.2, 0.2, robot.dof)
        return RepeatedMotion(robot.name, Sinusoids(centre, amplitude, frequency, duration=60.0))

    return motion
