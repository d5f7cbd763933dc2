"""A candidate model beside the model in use, over time that neither was fitted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import t as student

from ur_energy_model.learning.information import ArmMotion
from ur_energy_model.learning.model_record import ModelRecord
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array

LEAST_CELLS = 4
LEAST_GAIN = 0.01
"""Relative reduction of the squared error below which a model counts as no better."""
CERTAINTY = 0.95
"""Of the one-sided test."""
LEAST_NARROWING = 0.1
"""Relative reduction of the joints' intervals for which a model that predicts as well is taken."""
LEAST_ERROR = 0.002
"""Relative error of the energy at the supply that any model may have."""


@dataclass(frozen=True)
class Verdict:
    """Comparison of the candidate with the model in use.

    Attributes:
        accepted: whether the candidate predicts better.
        reason: one clause in words.
    """

    accepted: bool
    reason: str


class Trial:
    """A candidate and the model in use over the same held-out time.

    Args:
        present: model in use.
        candidate: model that may replace it.
        robot: their arm.
    """

    def __init__(
        self, present: EnergyModel, candidate: EnergyModel, robot: RobotDescription
    ) -> None:
        self.present = ModelRecord(present, robot)
        self.candidate = ModelRecord(candidate, robot)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        return {"present": self.present.saved(), "candidate": self.candidate.saved()}

    @classmethod
    def restored(cls, saved: Mapping[str, Any], robot: RobotDescription) -> Trial:
        """The trial that `saved` describes."""
        records = [ModelRecord.restored(saved[key], robot) for key in ("present", "candidate")]
        out = cls(records[0].model, records[1].model, robot)
        out.present, out.candidate = records
        return out

    def observe(self, window: Telemetry, motions: list[ArmMotion]) -> None:
        """Compare both with a window and its motions."""
        self.present.observe(window, motions)
        self.candidate.observe(window, motions)

    def verdict(self) -> Verdict:
        """Whether the candidate predicts better, by more than the uncertainty of the difference."""
        supply = better_or_worse(*self._supply_losses())
        current = better_or_worse(*self._current_losses())
        if supply > 0 and current >= 0:
            return Verdict(True, "predicts the power at the supply better")
        if supply >= 0 and current > 0:
            return Verdict(True, "predicts the currents better")
        if supply >= 0 and current >= 0 and self._narrower():
            return Verdict(True, "predicts as well, with narrower intervals")
        if supply < 0 or current < 0:
            what = "power at the supply" if supply < 0 else "currents"
            return Verdict(False, f"predicts the {what} worse")
        return Verdict(False, "no better than the model in use")

    def _narrower(self) -> bool:
        """Whether the candidate's intervals are narrower and still contain what was measured.

        A prediction is a value and its interval: of two with the same error, the narrower is the
        better one as long as it holds. Here a larger mean error counts, certain or not.
        """
        if len(self.present.moving_cells) < LEAST_CELLS or not self._as_good():
            return False
        before, after = self.present.joint_intervals, self.candidate.joint_intervals
        if not after.mean() < (1.0 - LEAST_NARROWING) * before.mean():
            return False
        error = self.candidate.supply_energy_error
        return error is None or abs(error) <= max(self.candidate.supply_interval, LEAST_ERROR)

    def _as_good(self) -> bool:
        """Whether no mean loss of the candidate is above the present one's by LEAST_GAIN."""
        pairs = (self._supply_losses(), self._current_losses())
        return all(
            after.mean() <= (1.0 + LEAST_GAIN) * before.mean()
            for before, after in pairs
            if len(before)
        )

    def _supply_losses(self) -> tuple[Array, Array]:
        """Squared errors at the supply of the present and the candidate [cells], W^2."""
        return np.square(self.present.supply), np.square(self.candidate.supply)

    def _current_losses(self) -> tuple[Array, Array]:
        """Squared errors of the currents of both [cells], relative to the present's mean."""
        before, after = self.present.moving_cells, self.candidate.moving_cells
        known = np.isfinite(before)
        scale = np.where(known, before, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        usual = np.where(scale > 0, scale, 1.0)
        return np.nansum(before / usual, axis=1), np.nansum(after / usual, axis=1)


def better_or_worse(before: Array, after: Array) -> int:
    """1 if the losses [cells] of the second are smaller, -1 if larger, 0 if neither is certain.

    A paired t test on the differences; neighbouring cells may resemble each other, so that the
    larger of two standard errors applies: of single cells and of groups of five.
    """
    difference = before - after
    count = len(difference)
    if count < LEAST_CELLS:
        return 0
    error = _standard_error(difference)
    groups = count // 5
    if groups >= LEAST_CELLS:
        means = difference[: 5 * groups].reshape(groups, 5).mean(axis=1)
        error, count = max(error, _standard_error(means)), groups
    limit = float(student.ppf(CERTAINTY, count - 1)) * error
    gain = float(difference.mean())
    if gain > limit and gain > LEAST_GAIN * float(before.mean()):
        return 1
    return -1 if -gain > limit and -gain > LEAST_GAIN * float(before.mean()) else 0


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))
