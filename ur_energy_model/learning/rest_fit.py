"""What shows at standstill and in regeneration only: presliding travels, bus capacitor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ur_energy_model.identification.friction.presliding_fit import PreslidingFit, with_travels
from ur_energy_model.identification.power.power_columns import power_rows
from ur_energy_model.identification.power.power_stage import CapacitorFit, with_capacitor
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.file.document import document
from ur_energy_model.model.file.model_file import model_from_document
from ur_energy_model.telemetry.modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array


class RestFit:
    """Errors of candidate travels and capacitor energies, with a model fitted before.

    Neither is linear in its parameters, so that errors are accumulated with the last model fitted,
    and its successor takes the best candidates.

    Args:
        model: that errors are computed with.
        learned: whether it was fitted to this arm; else its own values are kept.
    """

    def __init__(self, model: EnergyModel, *, learned: bool) -> None:
        self.model, self.learned = model, learned
        self._presliding, self._capacitor = PreslidingFit(model), CapacitorFit(model)

    def add_motion(self, motion: FilteredMotion, link_torque: Array, narrow: NarrowFilter) -> None:
        """Add a motion with its links' torque [samples, n], joint side, N m."""
        if self.learned:
            self._presliding.start_recording()
            self._presliding.accumulate(motion, link_torque, narrow)

    def add_supply(self, window: Telemetry) -> None:
        """Add the bus power of a window."""
        rows = power_rows(window) if self.learned else None
        if rows is None:
            return
        use = np.isin(rows.mode, BRAKES_RELEASED)
        self._capacitor.start_recording()
        self._capacitor.accumulate(rows.time[use], rows.qd[use], rows.current[use], rows.power[use])

    def completed(self, model: EnergyModel) -> EnergyModel:
        """A newly fitted model with travels and capacitor energy."""
        if not self.learned:
            known = np.array([joint.friction.presliding for joint in self.model.joints])
            return with_travels(with_capacitor(model, np.zeros(len(self._capacitor.errors))), known)
        return with_travels(
            with_capacitor(model, self._capacitor.errors), self._presliding.travels()
        )

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue, see `restored`."""
        return {
            "model": document(self.model),
            "learned": self.learned,
            "presliding": self._presliding.saved(),
            "capacitor": self._capacitor.errors,
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> RestFit:
        """The fit that `saved` describes."""
        out = cls(model_from_document(saved["model"], "state"), learned=bool(saved["learned"]))
        out._presliding.restore(saved["presliding"])
        out._capacitor.errors = np.array(saved["capacitor"], dtype=float)
        return out
