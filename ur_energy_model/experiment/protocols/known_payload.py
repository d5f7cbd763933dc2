"""Protocol s4, Machines 2024, 12(9), 595: self and general verification, known payload."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.experiment.protocols import articulated_robot
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.identification.dynamics.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.payload.payload_identification import payload_difference
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.file.model_file import save_model

PAYLOAD = 1.0
"""Known mass [kg]; every arm can carry it."""
DIFFERS = ("arm", "data", "method")


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Verify without payload on the same and on another motion, then identify a known payload.

    The paper's own robot exists in simulation only, with parts of the experiment that others lack.
    """
    if session.robot.name == articulated_robot.ROBOT:
        return articulated_robot.run(session, published)
    if session.mount is not None:
        session.mount(0.0)
    design = session.design("excitation", session.seed)
    other = session.design("general", session.seed + 1)
    fitted = session.record("excitation_unloaded", design.trajectory)
    general = session.record("general_unloaded", other.trajectory)
    base = identify_base_parameters(
        [fitted], session.robot, validate=[general], progress=session.progress
    )
    found = identify([fitted], session.robot, validate=[general], progress=session.progress)
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    verification = base.verification
    parameters = base.parameters
    rows = [
        Row(
            "base parameters (published without, here with motor inertias)",
            published["base_parameters"],
            parameters.regrouping.rank,
            "Table 9",
            "rank of the regressor with friction",
            ("arm", "method"),
            0.0,
        ),
        Row(
            "torque error by joint, RMS, self verification [N m]",
            None,
            parameters.torque_rms,
            "Fig. 15",
            "prediction of the fitted motion; torque from measured currents",
            DIFFERS,
        ),
        Row(
            "torque error by joint, RMS, general verification [N m]",
            None,
            None if verification is None else verification.torque_rms,
            "Fig. 17",
            "prediction of another motion; torque from measured currents",
            DIFFERS,
        ),
        Row(
            "torque R2 by joint, general verification",
            None,
            None if verification is None else verification.torque_r2,
            "Fig. 17",
            "prediction of another motion; torque from measured currents",
            DIFFERS,
        ),
    ]
    rows += identify_known_payload(session, published, design.trajectory, found, fitted)
    return session.finish("s4", published, rows)


def identify_known_payload(
    session: ProtocolRun,
    published: Mapping[str, Any],
    motion: PeriodicMotion,
    found: Identification,
    unloaded: Path,
) -> list[Row]:
    """Rows about a known payload, from loaded minus unloaded currents; empty without a mount.

    Args:
        session: run of the protocol.
        published: figures of the paper.
        motion: motion to repeat with the payload.
        found: model identified without payload.
        unloaded: bag of the motion without payload.
    """
    if session.mount is None:
        session.warnings.append(
            "the part with a payload was skipped: somebody has to mount it; run without --yes"
        )
        return []
    session.mount(PAYLOAD)
    try:
        loaded = session.record("excitation_loaded", motion)
    finally:
        session.mount(0.0)
    ratio = published["payload_torque_estimated"] / published["payload_torque_applied"]
    mass, std = payload_difference(found.model, loaded, unloaded, progress=session.progress)
    place, how = "Section 5.2", "loaded minus unloaded currents of one motion, all joints"
    return [
        Row("known payload [kg]", None, PAYLOAD, place, "mounted, not declared to the controller"),
        Row("payload found [kg]", None, mass, place, how),
        Row("its standard deviation [kg]", None, std, place, how),
        Row("estimated over applied load", ratio, mass / PAYLOAD, place, how, DIFFERS, 0.05),
    ]
