"""Change-over of a monitor to another model: the difference between both over the same work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ur_energy_model.identification.regression.filtered_motion import FilteredMotion
from ur_energy_model.learning.minute import SETUP, Minute, MinuteMeter
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel


class NextModel:
    """Measures minutes with the next model beside the present one, until one is complete.

    Args:
        model: the next one, n joints.

    Attributes:
        model: the next one.
        meter: that goes on with it.
        level: levels of friction by the next model minus those by the present one [n]; NaN where
            not known yet.
        setup: the same of the deviations from the stated setup [3].
    """

    def __init__(self, model: EnergyModel) -> None:
        self.model = model
        self.meter = MinuteMeter(model)
        self.level = np.full(model.dof, np.nan)
        self.setup = np.zeros(len(SETUP))
        self._whole = False
        """Whether the minute in progress began with this meter."""

    def observe(
        self, motion: FilteredMotion, dynamics: ArmDynamics, present: Sequence[Minute]
    ) -> bool:
        """Use a motion that the present model's meter has seen.

        Args:
            motion: of the arm.
            dynamics: of the arm in the setup that the controller was told.
            present: minutes that the present model's meter completed with this motion.

        Returns:
            whether the difference between the models is known.
        """
        for own in self.meter.observe(motion, dynamics):
            before = [minute for minute in present if minute.time == own.time]
            if self._whole and before:
                self.level = own.level - before[0].level
                self.setup = own.setup - before[0].setup
                return True
            self._whole = True
        return False
