"""A model in the session of its arm, as far as that is known.

Friction is what learning follows as soon as that was measured in the session, before that and
without learning what the first seconds of motion show, before those what earlier sessions let
expect. Standby power is tracked at standstill.
"""

from __future__ import annotations

from dataclasses import replace

from ur_energy_model.energy.session.motion_anchor import MotionAnchor
from ur_energy_model.energy.session.standby_tracker import StandbyTracker
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.plausibility import ANY_ARM, PlausibleRanges


class SessionModel:
    """A model with what is known of the session.

    Args:
        model: of the arm, in its session or in any.
        limits: plausible values of its telemetry.

    Attributes:
        motion: anchors friction on the first motion, for predictions.
    """

    def __init__(self, model: EnergyModel, limits: PlausibleRanges = ANY_ARM) -> None:
        self._model, self._session = model, model.session
        self.motion = MotionAnchor(model, limits)

    def use_friction(self, friction: SessionFriction | None) -> None:
        """Take this friction from now on; None for that of the model."""
        session = self._model.session
        self._session = session if friction is None else friction.applied_to(session)

    def tracked(self) -> EnergyModel:
        """The model for samples, whose error of standby power the standby tracker states."""
        return self._model.in_session(replace(self._session, standby_std=0.0))

    def anchored(self, standby: StandbyTracker) -> EnergyModel:
        """The model for predictions, with the standby power that is tracked."""
        session = self._session
        if session.moving_seconds == 0.0 and self.motion.session is not None:
            session = self.motion.session
        session = replace(session, standby=standby.power, standby_std=standby.std)
        if standby.anchored:
            session = replace(session, still_seconds=standby.still_seconds)
        return self._model.in_session(session)
