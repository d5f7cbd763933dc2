"""Protocol s0, Clochiatti et al., Robotica 2024: test motions A and B through random points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.experiment.periodic_motion import RepeatedMotion
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.experiment.protocols.random_point_pictures import draw_test_motions
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.trajectory.planner import Planner
from ur_energy_model.typing import Array

LARGE, WRISTS = slice(0, 3), slice(3, 6)
"""Joints of the larger and the smaller size."""
REPETITIONS = 2
DISSIPATED_SHARE = 0.01
"""Share of the supply energy above which dissipated regenerated energy is reported."""


def run(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Fit on motion A, evaluate torque, current and energy on motion B."""
    planner = Planner(session.robot)

    def through_points(seed: int) -> RepeatedMotion:
        motion = planner.chain_through(planner.random_points(seed))
        return RepeatedMotion(session.robot.name, motion, REPETITIONS)

    bags = [
        session.record(name, session.first_safe(through_points, session.seed + offset))
        for name, offset in (("trajectory_a", 11), ("trajectory_b", 23))
    ]
    found = identify(
        bags[:1],
        session.robot,
        validate=bags[1:],
        options=IdentificationOptions(friction="power_flow"),
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    energies = estimate_energy(found.model, bags[1])
    dissipated = energies.supply - energies.electrical.sum() - energies.driver - energies.standby
    if dissipated > DISSIPATED_SHARE * energies.supply:
        session.warnings.append(
            f"on B the joints regenerate {dissipated:.0f} J that no other joint uses at the time; "
            "the model counts it as dissipated, so it overestimates by what the bus stores"
        )
    held_out = found.validation[0]
    torque, current = _errors(held_out.torque), _errors(held_out.current)
    constants = np.array([joint.torque_constant for joint in found.model.joints])
    inertia = _motor_inertia(session, found)
    rows = [
        Row("torque, largest error per joint [N m]", published["torque_peak"], torque["max"]),
        Row("torque R2 per joint", published["torque_r2"], torque["r2"]),
        Row(
            "current RMS error, joints 1-3 [A]",
            published["current_rms_large_joints"],
            current["rms"][LARGE],
        ),
        Row(
            "current RMS error, wrists [A]", published["current_rms_wrists"], current["rms"][WRISTS]
        ),
        Row("current R2 per joint", published["current_r2"], current["r2"]),
        Row(
            "mean motor inertia, joints 1-3 [kg m2]",
            published["motor_inertia_large_joints"],
            _mean_of_known(inertia[LARGE]),
        ),
        Row(
            "mean motor inertia, wrists [kg m2]",
            published["motor_inertia_wrists"],
            _mean_of_known(inertia[WRISTS]),
        ),
        Row(
            "mean torque constant, joints 1-3 [N m/A]",
            published["torque_constant_large_joints"],
            float(constants[LARGE].mean()),
        ),
        Row(
            "mean torque constant, wrists [N m/A]",
            published["torque_constant_wrists"],
            float(constants[WRISTS].mean()),
        ),
        Row("mechanical energy on B per joint [J]", None, energies.mechanical),
        Row("electrical energy on B per joint [J]", None, energies.electrical),
        Row("efficiency on B per joint", None, energies.efficiency),
        Row(
            "energy at the supply, model and measured [J]",
            None,
            [energies.supply, float("nan") if energies.bus is None else energies.bus],
        ),
        Row("of that given back and counted as burned [J]", None, float(dissipated)),
    ]
    draw_test_motions(session, found.model, bags)
    return session.finish("s0", published, rows)


def _errors(entries: Sequence[Mapping[str, float | None]] | None) -> dict[str, Array]:
    """Error statistics per joint [n]; NaN if unknown."""
    return {
        name: np.array([entry[name] for entry in entries or ()], dtype=float)
        for name in ("max", "rms", "r2")
    }


def _mean_of_known(values: Array) -> float | None:
    """Mean without NaN; None if all are NaN (the reducers of CB3 arms are unpublished)."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _motor_inertia(session: ProtocolRun, found: Identification) -> Array:
    """Motor inertia without the reducer, motor side [n], kg m^2."""
    robot = session.robot
    reflected = np.array([joint.reflected_inertia for joint in found.model.joints])
    return np.asarray(reflected / robot.gear_ratio**2 - robot.reducer_inertia)
