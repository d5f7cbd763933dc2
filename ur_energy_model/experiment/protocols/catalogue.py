"""The protocols of the papers, from design to verdict.

s0: Clochiatti et al., Robotica 2024 - test motions A and B through random points.
s1: Raviola et al., RAAD 2021 - exciting Fourier trajectory, base parameters, validation.
s2: Heredia et al., EcBot - sinusoids, free power model.
s4: Machines 2024, 12(9), 595 - self and general verification, known payload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.experiment.periodic_motion import PeriodicMotion, RepeatedMotion
from ur_energy_model.experiment.protocols.outcome import Outcome, Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.experiment.protocols.published_results import published_results
from ur_energy_model.identification.dynamics.base_parameter_bags import identify_base_parameters
from ur_energy_model.identification.payload.payload_identification import payload_difference
from ur_energy_model.identification.pipeline import Identification, IdentificationOptions, identify
from ur_energy_model.model.file.model_file import save_model
from ur_energy_model.trajectory.motions import Sinusoids
from ur_energy_model.trajectory.planner import Planner
from ur_energy_model.typing import Array

LARGE, WRISTS = slice(0, 3), slice(3, 6)
"""Joints of the larger and the smaller size."""
REPETITIONS = 2
PAYLOAD = 1.0
"""Known mass of s4 [kg]: every arm carries it."""
_OPEN = np.array([0.0, -np.pi / 2, np.pi / 3, -np.pi / 2, -np.pi / 4, 0.0])
"""Position from which every arm has room on all sides; at home a UR5's hand is too close to its
forearm for any sinusoid [rad]."""
_MUCH_BURNED = 0.01
"""Share of the supply's energy from which on regeneration is worth a remark."""


def s0(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Fit on motion A, judge on motion B: torque, current, energy."""
    planner = Planner(session.robot)

    def through_points(seed: int) -> RepeatedMotion:
        motion = planner.chain_through(planner.random_points(seed))
        return RepeatedMotion(session.robot.name, motion, REPETITIONS)

    bags = [
        session.record(name, session.safe(through_points, session.seed + offset))
        for name, offset in (("trajectory_a", 11), ("trajectory_b", 23))
    ]
    found = identify(
        bags[:1],
        session.robot,
        IdentificationOptions(friction="power_flow"),
        validate=bags[1:],
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    energies = estimate_energy(found.model, bags[1])
    burned = energies.supply - energies.electrical.sum() - energies.driver - energies.standby
    if burned > _MUCH_BURNED * energies.supply:
        session.warnings.append(
            f"on B the joints give back {burned:.0f} J more than others take at that time; the "
            "model counts that as burned, and is as much too high where a capacitor keeps it"
        )
    torque, current = _errors(found, "torque"), _errors(found, "current")
    constants, inertia = _constants(found), _motor_inertia(session, found)
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
        Row("of that given back and counted as burned [J]", None, float(burned)),
    ]
    return session.finish("s0", published, rows)


def s1(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Three periods of an exciting trajectory, base parameters, another one for validation."""
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
        IdentificationOptions(friction="coulomb_viscous"),
        validate=[held_out],
        progress=session.progress,
    )
    save_model(found.model, session.folder / "model.yaml")
    session.warnings += base.warnings
    rows = [
        Row("condition number, designed", published["condition_number"], design.condition_number),
        Row("condition number, as recorded", None, base.parameters.condition_number),
        Row("base parameters", published["base_parameters"], base.parameters.regrouping.rank),
        Row(
            "normalised error on the validation motion [N m]",
            published["normalised_error"],
            base.normalised_error,
        ),
        Row("torque constants [N m/A]", published["torque_constants"], _constants(found)),
        Row("clearance kept [m]", None, design.verdict.clearance),
    ]
    return session.finish("s1", published, rows)


def s2(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Sinusoids for fitting and others for testing, with the free power model."""
    bags = [
        session.record(name, session.safe(_sinusoids(session, pace), session.seed + offset))
        for name, pace, offset in (("training", 1.0, 0), ("testing", 0.8, 1))
    ]
    rows = []
    for kind, label in (("ecbot", "free model"), ("physical", "physical model")):
        found = identify(
            bags[:1],
            session.robot,
            IdentificationOptions(power_model=kind),
            validate=bags[1:],
            progress=session.progress,
        )
        save_model(found.model, session.folder / f"model_{kind}.yaml")
        for part, metrics in (("train", found.fit[0]), ("test", found.validation[0])):
            power = metrics.power or {}
            here = [power.get(key) for key in ("rmse", "rmse_percent", "r2")]
            theirs = [
                f"{arm} {' '.join(str(value) for value in published[arm][part])}"
                for arm in ("ur3e", "ur10e")
            ]
            rows.append(
                Row(
                    f"power {part}, {label}: RMSE [W], [% of range], R2",
                    "; ".join(theirs) if kind == "ecbot" else None,
                    here,
                )
            )
    return session.finish("s2", published, rows)


def s4(session: ProtocolRun, published: Mapping[str, Any]) -> Outcome:
    """Self and general verification without payload, then a known payload."""
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
        ),
        Row("torque RMS, self verification [N m]", None, parameters.torque_rms),
        Row(
            "torque RMS, general verification [N m]",
            None,
            None if verification is None else verification.torque_rms,
        ),
        Row(
            "torque R2, general verification",
            None,
            None if verification is None else verification.torque_r2,
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
    """Rows about a known payload, identified by load minus no load; none where nobody can mount it.

    Args:
        session: of the protocol.
        published: what the paper reports.
        motion: run with the payload, as it was without.
        found: the model, identified without payload.
        unloaded: bag of that motion without payload.
    """
    if session.mount is None:
        session.warnings.append(
            "the part with a payload was left out: nobody is there to mount it; run without --yes"
        )
        return []
    session.mount(PAYLOAD)
    try:
        loaded = session.record("excitation_loaded", motion)
    finally:
        session.mount(0.0)
    ratio = published["payload_torque_estimated"] / published["payload_torque_applied"]
    mass, std = payload_difference(found.model, loaded, unloaded, progress=session.progress)
    return [
        Row("known payload [kg]", None, PAYLOAD),
        Row("payload found, loaded minus unloaded currents [kg]", None, mass),
        Row("its standard deviation [kg]", None, std),
        Row("estimated over applied load", ratio, mass / PAYLOAD),
    ]


def _sinusoids(session: ProtocolRun, pace: float) -> Callable[[int], RepeatedMotion]:
    """Seeded sinusoids of all joints about an open position, one minute."""
    robot = session.robot

    def motion(seed: int) -> RepeatedMotion:
        random = np.random.default_rng(seed)
        frequency = pace * random.permutation(np.linspace(0.08, 0.21, robot.dof))
        speed = 2 * np.pi * frequency
        amplitude = np.minimum.reduce([np.full(robot.dof, 0.6), 0.4 * robot.max_velocity / speed])
        centre = _OPEN + random.uniform(-0.2, 0.2, robot.dof)
        return RepeatedMotion(robot.name, Sinusoids(centre, amplitude, frequency, duration=60.0))

    return motion


def _errors(found: Identification, channel: str) -> dict[str, Array]:
    """Error statistics per joint [n] on the held-out motion."""
    entries = getattr(found.validation[0], channel) or []
    names = ("mean", "max", "rms", "r2")
    return {
        name: np.array([np.nan if e[name] is None else e[name] for e in entries]) for name in names
    }


def _constants(found: Identification) -> Array:
    return np.array([joint.torque_constant for joint in found.model.joints])


def _mean_of_known(values: Array) -> float | None:
    """Mean without NaN; None where all are: nobody states the reducers' inertia of a CB3 arm."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _motor_inertia(session: ProtocolRun, found: Identification) -> Array:
    """Motor inertia without the reducer's, motor side [n], kg m^2."""
    robot = session.robot
    reflected = np.array([joint.reflected_inertia for joint in found.model.joints])
    return np.asarray(reflected / robot.gear_ratio**2 - robot.reducer_inertia)


PROTOCOLS: dict[str, Callable[[ProtocolRun, Mapping[str, Any]], Outcome]] = {
    "s0": s0,
    "s1": s1,
    "s2": s2,
    "s4": s4,
}
"""Recipes by name."""


def run_protocol(name: str, session: ProtocolRun) -> Outcome:
    """Run a protocol, one of `PROTOCOLS`."""
    return PROTOCOLS[name](session, published_results()[name])
