"""Protocol s1, Raviola et al., RAAD 2021: exciting trajectory, base parameters, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.identification.dynamics.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.pipeline import IdentificationOptions, identify
from ur_energy_model.model.file.model_file import save_model


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Identify base parameters from three periods; validate on another exciting trajectory."""
    design = session.design("excitation", session.seed)
    other = session.design("validation", session.seed + 1)
    fitted = session.record("excitation", design.trajectory)
    held_out = session.record("validation_run", other.trajectory)
    base = identify_base_parameters(
        [fitted], session.robot, validate=[held_out], progress=session.progress
    )
    found = identify(
        [fitted],
        session.robot,
        validate=[held_out],
        options=IdentificationOptions(friction="coulomb_viscous"),
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    torque_constants = [joint.torque_constant for joint in found.model.joints]
    rows = [
        Row("condition number, designed", published["condition_number"], design.condition_number),
        Row("condition number, as recorded", None, base.parameters.condition_number),
        Row("base parameters", published["base_parameters"], base.parameters.regrouping.rank),
        Row(
            "normalised error on the validation motion [N m]",
            published["normalised_error"],
            base.normalised_error,
        ),
        Row("torque constants [N m/A]", published["torque_constants"], torque_constants),
        Row("clearance kept [m]", None, design.verdict.clearance),
    ]
    return session.finish("s1", published, rows)
