"""The result of a payload identification."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.model.payload_calibration import PayloadCalibration
from ur_energy_model.model.setup import Payload
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PayloadEstimate:
    """What the flange carries.

    Attributes:
        payload: mass, centre of mass (flange frame), inertia (possible, mostly a guess).
        shown_mass: kg, as the currents show it: below zero where they ask for less than the bare
            links do, which `payload` cannot hold.
        mass_std: kg; correlated residuals, and errors of links and torque constants, allowed for.
        center_std: [3], m; NaN where the mass is too small to have a centre.
        torque_rms: residual per joint [n], N m, joint side, of the model as it is with the payload
            found (and with calibrated torque constants); NaN for joints that did not move.
        misfit: that residual over the one of the model's own recordings, median over joints; NaN
            where the model does not say.
        torque_constants: [n], N m/A, motor side, as links and payload together show them.
        torque_constants_std: [n], N m/A.
        calibration: what is known of links and drives after this recording.
        samples: torque samples used, joints counted one by one.
    """

    payload: Payload
    shown_mass: float
    mass_std: float
    center_std: Array
    torque_rms: Array
    misfit: float
    torque_constants: Array
    torque_constants_std: Array
    calibration: PayloadCalibration
    samples: int

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `shown_mass` [kg]."""
        half = CONFIDENCE * self.mass_std
        return self.shown_mass - half, self.shown_mass + half
