"""Friction scales of a session from the first seconds of motion that telemetry shows."""

from __future__ import annotations

import numpy as np

from ur_energy_model.energy.session.friction_anchor import (
    ANCHOR_SPEED,
    FrictionAnchor,
    MeasuredMotion,
)
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session, begins_session
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges, impossible_rows
from ur_energy_model.telemetry.samples import Telemetry

MOST_SECONDS = 120.0
"""Motion of the arm after which joints that hardly moved are left as they are [s]."""
_LONGEST_STEP = 0.05
_FIELDS = ("target_q", "target_qd", "target_qdd", "actual_current")


class MotionAnchor:
    """Anchors the friction of each session, for as long as that takes.

    Accelerations are the controller's targets: those differentiated from measured speeds come too
    late, and inertia would count as friction.

    Args:
        model: of the arm, n joints; one that is anchored already stays as it is.
        limits: of the arm; blocks of samples with a value beyond them are left out.
    """

    def __init__(self, model: EnergyModel, limits: PlausibleRanges = ANY_ARM) -> None:
        self._model, self._limits = model, limits
        self._time: float | None = None
        self._begin()

    def _begin(self) -> None:
        anchored = self._model.session.moving_seconds > 0
        self._anchor = None if anchored else FrictionAnchor(self._model)
        self._session: Session | None = None
        self._seconds = 0.0

    def observe(self, samples: Telemetry, dynamics: ArmDynamics) -> None:
        """Use usable samples that follow the previous ones.

        Args:
            samples: of one setup; those without targets and currents tell nothing.
            dynamics: of the arm in its setup.
        """
        before, self._time = self._time, float(samples.time[-1])
        if before is not None and begins_session(before, float(samples.time[0])):
            self._begin()
        anchor, columns = self._anchor, samples.columns
        if anchor is None or len(samples) < 2 or any(name not in columns for name in _FIELDS):
            return
        used = {name: columns[name] for name in _FIELDS}
        q, qd, qdd, current = used.values()
        if not np.abs(qd).max() >= ANCHOR_SPEED or np.diff(samples.time).max() > _LONGEST_STEP:
            return
        if impossible_rows(used, self._limits)[0].any():
            return
        temperature = columns.get("joint_temperatures")
        anchor.observe(MeasuredMotion(samples.time, q, qd, qdd, current, temperature), dynamics)
        self._seconds += samples.duration
        self._session = anchor.session()
        if anchor.done or self._seconds >= MOST_SECONDS:
            self._anchor = None

    @property
    def session(self) -> Session | None:
        """Friction so far, with the model's standby power; None before the arm has moved."""
        return self._session
