"""Options of a simulated arm that most users leave at their defaults."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.simulation.arm.joint_controller import ControllerKind


@dataclass(frozen=True)
class ArmOptions:
    """How a simulated arm is operated.

    Attributes:
        session: number of the arm's session, 0 for the arm as drawn.
        ambient: ambient temperature [degC].
        controller: "feedforward" (inverse dynamics and feedback) or "pd" (with gravity
            compensation).
        controller_version: reported software version; it decides which RTDE fields exist.
    """

    session: int = 0
    ambient: float = 25.0
    controller: ControllerKind = "feedforward"
    controller_version: tuple[int, ...] = (5, 11, 0)
