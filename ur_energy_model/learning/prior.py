"""Model of an arm not yet identified: robot file and typical values."""

from __future__ import annotations

import numpy as np

from ur_energy_model.identification.assembly import BodyResults, assemble, fit_drives
from ur_energy_model.identification.dynamics.recording_dynamics import RecordingDynamics
from ur_energy_model.identification.dynamics.reflected_inertia import expected_inertia
from ur_energy_model.identification.friction.current_regression import CurrentRegression
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.generic import generic_model, generic_models
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.samples import RecordingInfo


def first_model(robot: RobotDescription) -> EnergyModel:
    """The generic model of the arm type; without one, that of the robot file.

    Raises:
        IdentificationError: neither a generic model nor torque constants.
    """
    known = robot.source in generic_models()
    return generic_model(robot) if known else prior_model(robot)


def prior_model(robot: RobotDescription) -> EnergyModel:
    """The model that the identification's priors give without any data.

    Raises:
        IdentificationError: the robot file has no torque constant for a joint.
    """
    joints = CurrentRegression(robot).from_priors()
    stated = RecordingDynamics(robot, RecordingInfo(), None, None).stated(np.full(4, np.nan))
    body = BodyResults(robot, None, stated, expected_inertia(robot))
    results = fit_drives(body, joints, [PowerFit(robot)], "physical")
    return assemble(results, {"origin": "prior"})
