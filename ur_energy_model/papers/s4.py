# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Protocol s4, Machines 2024, 12(9), 595: self and general verification, known payload.

On the robot of the paper, which exists in simulation only, the protocol has all parts of
the paper (`s4_own_robot`). On every other arm it identifies base parameters from one
exciting motion, verifies them on the same and on another motion, and finds a known
payload; this module has that part.
"""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.experiment.limits import PeriodicMotion
from ur_energy_model.identification.base_parameter_fit import identify_base_parameters
from ur_energy_model.identification.payload import identify_payload
from ur_energy_model.identification.pipeline import Identification, identify
from ur_energy_model.model.model_file import save_model
from ur_energy_model.papers.protocol import Outcome, ProtocolRun
from ur_energy_model.papers.published import Paper, ResultRow
from ur_energy_model.papers.s4_own_robot import ROBOT, run_on_own_robot

PAYLOAD = 1.0  # mass of the known payload [kg]; every arm can carry it


def run(session: ProtocolRun, paper: Paper) -> Outcome:
    """Verify without payload on the same and on another motion, then identify a known payload.

    On the robot of the paper, the paper's simulation and experiment are repeated instead.

    Args:
        session: the arm, the output folder, and how motions are run.
        paper: published values of the protocol.

    Returns:
        The rows of the paper with the values found here, written to the folder, too.

    Raises:
        UrEnergyError: a motion or an identification is not possible.
    """
    if session.robot.name == ROBOT:
        return run_on_own_robot(session, paper)
    if session.mount is not None:
        session.mount(0.0)
    excitation = session.design("excitation", session.seed)
    general = session.design("general", session.seed + 1)
    fitted = session.record("excitation_unloaded", excitation.trajectory)
    held_out = session.record("general_unloaded", general.trajectory)
    found = identify(
        [fitted], session.robot, validate=[held_out], progress=session.progress
    )
    save_model(found.model, session.folder / "model.yaml")
    robot = session.complete_torque_constants(found.model)
    base = identify_base_parameters(
        [fitted], robot, validate=[held_out], progress=session.progress
    )
    session.warnings += base.warnings
    parameters = base.parameters
    verification = base.verification
    general_rms = None
    general_r2 = None
    if verification is not None:
        general_rms = verification.torque_rms
        general_r2 = verification.torque_r2
    rows = [
        paper.row("other_base_parameters", parameters.regrouping.rank),
        paper.row("other_self_rms", parameters.torque_rms),
        paper.row("other_general_rms", general_rms),
        paper.row("other_general_r2", general_r2),
        *identify_known_payload(session, paper, excitation.trajectory, found, fitted),
    ]
    return session.finish(paper, rows)


def identify_known_payload(
    session: ProtocolRun,
    paper: Paper,
    motion: PeriodicMotion,
    found: Identification,
    unloaded: Path,
) -> list[ResultRow]:
    """Rows about a known payload (sec. 5.2), from loaded minus unloaded currents.

    Args:
        session: the run; the payload is mounted on its arm, and taken off afterwards.
        paper: published values.
        motion: motion that the loaded arm repeats.
        found: identified model of the arm without payload.
        unloaded: recording of the same motion without payload.

    Returns:
        The rows; none, with a warning, where nobody can mount a payload.

    Raises:
        UrEnergyError: the payload cannot be mounted or identified, or the motion fails.
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
    payload = identify_payload(
        found.model, loaded, empty=unloaded, progress=session.progress
    )
    return [
        paper.row("payload", PAYLOAD),
        paper.row("payload_found", payload.shown_mass),
        paper.row("payload_std", payload.mass_std),
        paper.row("payload_ratio", payload.shown_mass / PAYLOAD),
    ]
