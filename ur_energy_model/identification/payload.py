"""The payload of an arm from its motor currents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.telemetry_checks import serials
from ur_energy_model.errors import IdentificationError, InputError
from ur_energy_model.identification.dynamics import estimate_dynamics
from ur_energy_model.identification.evaluation import ANOTHER_ARM
from ur_energy_model.identification.filtered_motion import FilteredMotion, ParallelFilter
from ur_energy_model.identification.friction_fit import SHORTEST_MOTION
from ur_energy_model.identification.least_squares import BlockedGram
from ur_energy_model.identification.payload_columns import (
    LoadedMotions,
    PayloadColumns,
    PayloadSolution,
    PayloadSolver,
)
from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.recording_reader import read_recording
from ur_energy_model.identification.torque_constants import LINK_WEIGHT_ERROR
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import CalibrationLayout, EnergyModel, PayloadCalibration
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import (
    COUNT,
    FIRST_MOMENT,
    MASS,
    TENSOR,
    Payload,
    point_tensor,
    tensor_of,
)
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Array, Progress

# PayloadEstimate: the result of a payload identification, and drives calibrated with it.


@dataclass(frozen=True)
class PayloadEstimate:
    """The identified payload.

    Attributes:
        payload: mass, centre of mass (flange frame), physically possible inertia (uncertain).
        shown_mass: estimate without constraint [kg]; negative where the torque is lower than that
            of the bare links.
        mass_std: kg; includes correlated residuals and errors of links and torque constants.
        center_std: [3], m; NaN where the mass is too small for a centre of mass.
        torque_rms: residual per joint of the model with this payload and calibrated torque
            constants [n], N m, joint side; NaN for joints that did not move.
        misfit: that residual over the one of the model's own recordings, median over joints; NaN
            where the model has none.
        torque_constants: from links and payload together [n], N m/A, motor side.
        torque_constants_std: [n], N m/A.
        calibration: posterior of links and drives after this recording.
        samples: number of torque samples, each joint counted.
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


def with_torque_constants(model: EnergyModel, estimate: PayloadEstimate) -> EnergyModel:
    """The model with calibrated torque constants.

    Friction was identified in amperes and scales with them. The calibration of links and drives is
    kept for later payload identifications.
    """
    joints = []
    for joint, value, std in zip(
        model.joints, estimate.torque_constants, estimate.torque_constants_std, strict=True
    ):
        scale = float(value) / joint.torque_constant
        friction = replace(
            joint.friction,
            parameters={name: scale * number for name, number in joint.friction.parameters.items()},
        )
        covariance = joint.current_covariance.copy()
        if covariance.size and covariance[0, 0] > 0:
            factor = float(std / value**2) / np.sqrt(covariance[0, 0])
            covariance[0] *= factor
            covariance[:, 0] *= factor
        joints.append(
            replace(
                joint,
                torque_constant=float(value),
                friction=friction,
                current_covariance=covariance,
                std={**joint.std, "torque_constant": float(std)},
                source={**joint.source, "torque_constant": "known_payload"},
            )
        )
    return replace(
        model,
        joints=tuple(joints),
        payload_calibration=estimate.calibration.with_calibrated_drives(),
    )


# Priors of links and drives for payload identification.
#
# Torque constants are identified with the links' published masses (torque_constants.py), so the
# weights of the links and of a payload are uncertain in different ways:
#
# - A drive's gain against its own links was identified in this very arm. Its error is what
# friction and links do not repeat. Joints that lift far more than their friction determine it
# well; wrists hardly lift their links, and there the stated deviation of the torque constant
# applies. - The gain against a payload has, in addition, the error of the published links, common
# to all joints (cables, covers and screws belong to no published link) and for each joint.

LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass beyond what its joint's gain covers, assumed."""
LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
OWN_ERROR = 0.02
"""Relative error of the links' weight at each joint, beyond the common LINK_WEIGHT_ERROR: how much
the joints of one arm differed."""
REPEATABLE = 0.003
"""Relative change of a drive's gain between recordings, assumed. As a share of the links' mass it
is the smallest reported difference from the payload set in the controller."""
_FRICTION_SHARE = 0.01
"""Share of friction that a regression assigns to the links' weight: the repeatability of friction
(payload_columns.py)."""
_EMPTY_FLANGE = np.array([0.3, 0.03, 0.03, 0.03])
"""Deviation of what may be mounted on an "empty" flange: mass [kg] and first moments [kg m]."""
_LEAST = 1e-9


def stated_prior(
    columns: PayloadColumns, joints: Sequence[JointModel], weight: Array, *, empty: bool = False
) -> PayloadCalibration:
    """Prior for a model without calibration by a known payload.

    Args:
        columns: of the arm, n joints.
        joints: of the model, n.
        weight: RMS of the bare arm's torque at each joint in the recording [n], N m; 0 for joints
            that stood still.
        empty: the flange counts as empty, even if something stays mounted on it.
    """
    stated = np.array([j.std.get("torque_constant", 0.0) / j.torque_constant for j in joints])
    friction = _FRICTION_SHARE * columns.typical_friction / np.maximum(weight, _LEAST)
    gain = np.minimum(np.hypot(REPEATABLE, friction), np.maximum(stated, REPEATABLE))
    links = _links(columns)
    if empty:
        links[-1] = _EMPTY_FLANGE
    return _prior(links, gain)


def another_recording(known: PayloadCalibration) -> PayloadCalibration:
    """Prior for the next recording of a calibrated arm: gains change slightly."""
    covariance = known.covariance.copy()
    gains = CalibrationLayout(known.dof).link_gain
    covariance[gains, gains] += np.diag((REPEATABLE * known.link_gain) ** 2)
    return PayloadCalibration(known.links, known.link_gain, known.payload_gain, covariance)


def size_prior(
    columns: PayloadColumns, gain: Array, alike: Array, spread: tuple[float, float]
) -> PayloadCalibration:
    """Prior where only the torque constants of the arm's type are known.

    Args:
        columns: of the arm, n joints.
        gain: the model's over the type's torque constants [n].
        alike: which joints have motors of the same size [n, n].
        spread: relative, of a size between arms, and of the joints of one size in an arm.
    """
    between, within = spread
    n = len(gain)
    prior = _prior(_links(columns), np.ones(n))
    covariance = prior.covariance.copy()
    gains = CalibrationLayout(n).link_gain
    relative = between**2 * alike + within**2 * np.eye(n)
    covariance[gains, gains] = np.outer(gain, gain) * relative
    return PayloadCalibration(prior.links, gain, prior.payload_gain, covariance)


def _links(columns: PayloadColumns) -> Array:
    """Standard deviations of the links' masses and first moments [n, 4], kg and kg m."""
    masses = columns.masses
    center = LINK_CENTER_ERROR * masses
    return np.column_stack([LINK_MASS_ERROR * masses, center, center, center])


def _prior(links: Array, gain: Array) -> PayloadCalibration:
    """Independent links and link gains with these deviations; payload gains correlated."""
    n = len(gain)
    layout = CalibrationLayout(n)
    covariance = np.zeros((layout.size, layout.size))
    covariance[layout.links, layout.links] = np.diag(np.maximum(links.ravel(), _LEAST) ** 2)
    covariance[layout.link_gain, layout.link_gain] = np.diag(np.maximum(gain, _LEAST) ** 2)
    covariance[layout.payload_gain, layout.payload_gain] = (
        LINK_WEIGHT_ERROR** 2 + OWN_ERROR** 2 * np.eye(n)
    )
    return PayloadCalibration(np.zeros_like(links), np.ones(n), np.ones(n), covariance)


_STATIC = slice(MASS, FIRST_MOMENT.stop)
_ROUNDS = 6
_CONVERGED = 1e-3
"""Change of mass [kg] and first moments [kg m] between rounds at which the fit has converged."""
_ONE_SIDED_FRICTION = 0.01
"""Relative error of a torque constant that currents cannot distinguish from load friction that
depends on the direction of power flow, assumed."""
_LEAST_MASS = 0.01
_SIGNIFICANT = 3.0
"""Least mass for which a centre of mass is given, in standard deviations."""


class PayloadFit:
    """Estimates the payload of one recording with an identified model.

    Args:
        model: of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: in the base frame [3], m/s^2, of this recording.
        known_mass: payload mass, where it is known [kg]; calibrates the drives.
        empty: the flange counts as empty; calibrates the drives.
        calibration: from earlier recordings; the model's where None.
        friction_change: relative deviation of friction from the model's; from the temperatures
            where None.

    Raises:
        InputError: the known mass is not positive.
    """

    def __init__(
        self,
        model: EnergyModel,
        robot: RobotDescription,
        gravity: Array,
        *,
        known_mass: float | None = None,
        empty: bool = False,
        calibration: PayloadCalibration | None = None,
        friction_change: float | None = None,
    ) -> None:
        if known_mass is not None and not 0 < known_mass < 1000:
            raise InputError("--known-payload", f"{known_mass:g} kg", "give a mass above zero")
        self.model, self._empty = model, empty
        self._mass = 0.0 if empty else known_mass
        self._calibration = model.payload_calibration if calibration is None else calibration
        self._friction_change = friction_change
        self._columns = PayloadColumns(model, robot, gravity)

    def estimate(
        self, motions: Iterable[FilteredMotion], narrow: ParallelFilter | None = None
    ) -> PayloadEstimate:
        """Payload from filtered motion.

        Friction depends on the load and thus on the payload, so the fit is repeated with the
        payload found until it converges.

        Args:
            motions: of one recording; iterated several times.
            narrow: the recording's filter, for model and measurement alike.

        Raises:
            IdentificationError: too little motion.
        """
        payload = np.zeros(COUNT)
        payload[MASS] = self._mass or 0.0
        loaded = LoadedMotions(self._columns, motions, narrow)
        for _ in range(_ROUNDS):
            blocks, joints, temperature, duration = self._grams(loaded, payload)
            change = self._columns.friction_change(temperature)
            if self._friction_change is not None:
                change = np.full_like(change, self._friction_change)
            prior = self._prior(blocks)
            solver = PayloadSolver(
                self._columns, blocks, joints, prior, change, duration, self._mass
            )
            solution = solver.solve()
            moved = float(np.abs(solution.payload - payload)[_STATIC].max())
            payload = solution.payload
            if moved < _CONVERGED:
                break
        return self._result(
            solution, int(blocks[:, joints, self._columns.one, self._columns.one].sum())
        )

    def _prior(self, blocks: Array) -> PayloadCalibration:
        if self._calibration is not None:
            return another_recording(self._calibration)
        bare, one = self._columns.bare, self._columns.one
        total = blocks.sum(axis=0)
        weight = np.sqrt(total[:, bare, bare] / np.maximum(total[:, one, one], 1.0))
        return stated_prior(self._columns, self.model.joints, weight, empty=self._empty)

    def _grams(
        self, motions: LoadedMotions, payload: Array
    ) -> tuple[Array, list[int], Array, float]:
        """Normal equations of a recording.

        Returns:
            Gram matrices of the columns [blocks, n, width, width]; joints that moved long enough;
            mean joint temperatures [n], degC; time from the first to the last motion [s].
        """
        grams, one = BlockedGram(), self._columns.one
        temperature, samples = np.zeros(self._columns.dof), 0
        moving, duration = np.zeros(self._columns.dof), 0.0
        for motion in motions:
            temperature += motion.temperature
            samples += motion.samples
            duration = motion.elapsed
            for gram, duration in motion.gram_matrices(payload):
                grams.accumulate(gram, duration)
                moving += motion.period * gram[:, one, one]
        joints = [int(j) for j in np.flatnonzero(moving >= SHORTEST_MOTION)]
        if not joints:
            raise IdentificationError(
                f"payload identification needs {SHORTEST_MOTION:g} s of motion, and no joint moves "
                "that long; record a motion of all joints (ur_energy excite)"
            )
        return grams.blocks, joints, temperature / samples, duration

    def _result(self, solution: PayloadSolution, samples: int) -> PayloadEstimate:
        values, covariance = solution.payload, solution.payload_covariance
        mass, mass_std = float(values[MASS]), float(np.sqrt(covariance[MASS, MASS]))
        center, center_std = np.zeros(3), np.full(3, np.nan)
        inertia = np.zeros((3, 3))
        if mass > max(_LEAST_MASS, _SIGNIFICANT * mass_std):
            center = values[FIRST_MOMENT] / mass
            slopes = np.concatenate([-center[:, None], np.eye(3)], axis=1) / mass
            center_std = np.sqrt(np.diag(slopes @ covariance[_STATIC, _STATIC] @ slopes.T))
            inertia = possible_inertia(tensor_of(values[TENSOR]) - point_tensor(mass, center))
        calibration = solution.calibration
        gain = calibration.torque_gain
        constant = self._columns.torque_constant / gain
        return PayloadEstimate(
            payload=Payload(max(mass, 0.0), center, inertia),
            shown_mass=mass,
            mass_std=mass_std,
            center_std=center_std,
            torque_rms=solution.rms,
            misfit=self._misfit(solution.rms),
            torque_constants=constant,
            torque_constants_std=constant
            * np.hypot(calibration.torque_gain_std / gain, _ONE_SIDED_FRICTION),
            calibration=calibration,
            samples=samples,
        )

    def _misfit(self, rms: Array) -> float:
        """Median of the joints' residuals [n], N m, over those of the model's own recordings."""
        joints = self.model.joints
        usual = np.array([j.gear_ratio * j.torque_constant * j.current_residual for j in joints])
        known = (usual > 0) & np.isfinite(rms)
        return float(np.median(rms[known] / usual[known])) if known.any() else float("nan")


# Payload identification from bags: mounting from target_moment, payload from motor currents.


@dataclass(frozen=True)
class IdentifiedPayload:
    """Result of a payload identification from a bag.

    Attributes:
        estimate: from the motor currents.
        gravity: in the base frame [3], m/s^2, as used.
        gravity_source: "estimated" from the bag's target_moment, or "model".
        told_mass: payload set in the controller, from target_moment [kg]; NaN where unknown.
        warnings: for the user, one line each.
    """

    estimate: PayloadEstimate
    gravity: Array
    gravity_source: str
    told_mass: float
    warnings: tuple[str, ...]


def identify_payload(
    model: EnergyModel,
    bag: str | Path,
    *,
    robot: RobotDescription | None = None,
    known_mass: float | None = None,
    empty: str | Path | None = None,
    progress: Progress | None = None,
) -> IdentifiedPayload:
    """Payload identification from the motor currents of a bag.

    Args:
        model: of the same arm.
        bag: rosbag2 directory.
        robot: description of the arm, by default the one named in the model.
        known_mass: where it is known [kg]; calibrates the drives.
        empty: bag of the same arm that defines the empty flange; the payload is what is added
            to it.
        progress: called with fraction and text.

    Raises:
        UrEnergyError: a bag or the known mass cannot be used.
    """
    description = model.description(robot)
    calibration: PayloadCalibration | None = None
    warnings: tuple[str, ...] = ()
    if empty is not None:
        without = _identified(model, empty, description, empty=True, progress=progress)
        calibration = without.estimate.calibration
        warnings = without.warnings
    found = _identified(
        model, bag, description, known_mass=known_mass, calibration=calibration, progress=progress
    )
    return replace(found, warnings=(*warnings, *found.warnings))


def _identified(
    model: EnergyModel,
    bag: str | Path,
    description: RobotDescription,
    *,
    known_mass: float | None = None,
    empty: bool = False,
    calibration: PayloadCalibration | None = None,
    progress: Progress | None = None,
) -> IdentifiedPayload:
    with closing(read_recording(bag, description, progress=progress)) as recording:
        recording.quality.require_usable()
        if len(recording.quality.payloads) > 1:
            masses = ", ".join(f"{mass:g}" for mass in recording.quality.payloads)
            raise IdentificationError(
                f"{bag}: the payload changes within the bag ({masses} kg by RTDE); split it into "
                "bags with one payload each"
            )
        gravity, source, told = _mounting(recording, description, model)
        fit = PayloadFit(
            model, description, gravity, known_mass=known_mass, empty=empty, calibration=calibration
        )
        estimate = fit.estimate(recording.motions(), ParallelFilter(recording.cutoff))
        known = serials(model, recording.info)
        warnings = [*_arm_warnings(bag, estimate.misfit, known["model"], known["recording"])]
        if not warnings and known_mass is None and not empty and np.isfinite(told):
            least = REPEATABLE * float(description.mass.sum())
            warnings += _payload_warnings(bag, estimate, told, least)
        return IdentifiedPayload(estimate, gravity, source, told, tuple(warnings))


def _arm_warnings(
    bag: str | Path, misfit: float, model: str | None, recorded: str | None
) -> Iterator[str]:
    """Where the model is not one of the arm, or no longer fits it."""
    same = same_serial(model, recorded)
    if same is False:
        yield (
            f"{bag}: the model is of arm {model}, the recording of arm {recorded}, so do not trust "
            "the mass; use a model of this very arm"
        )
    elif misfit > ANOTHER_ARM:
        remedy = "identify it again, from more motion" if same else "use a model of this very arm"
        yield (
            f"{bag}: the model's error is {misfit:.0f} times that in the recordings it was "
            f"identified from, so do not trust the mass; {remedy}"
        )


def _payload_warnings(
    bag: str | Path, estimate: PayloadEstimate, told: float, least: float
) -> Iterator[str]:
    """Where the currents contradict the payload set in the controller.

    Args:
        bag: recording.
        estimate: of its payload.
        told: mass set in the controller [kg]; NaN where unknown.
        least: smallest difference that counts [kg].
    """
    (low, high), told = estimate.interval, max(told, 0.0)
    interval = f"({low:.2f} to {high:.2f} kg with 95 % confidence)"
    found = max(estimate.shown_mass, 0.0)
    if high < -least:
        yield (
            f"{bag}: the currents are lower than those of the bare arm, as with "
            f"{estimate.shown_mass:.2f} kg {interval}: mounting, robot file or model do not fit "
            "this arm; identify it again"
        )
    elif not low <= told <= high and abs(found - told) > least:
        yield (
            f"{bag}: the currents show {found:.2f} kg {interval}, but the controller computes with "
            f"{told:.2f} kg; check the payload and set the right one in the controller "
            "(set_payload)"
        )


def payload_difference(
    model: EnergyModel,
    loaded: str | Path,
    unloaded: str | Path,
    *,
    progress: Progress | None = None,
) -> tuple[float, float]:
    """Mass added to the flange between two runs of one trajectory (Machines 2024, sec. 5).

    Model errors of links and friction are the same in both runs and cancel.

    Args:
        model: of the same arm.
        loaded: bag with the mass on the flange.
        unloaded: bag of the same motion without it.
        progress: called with fraction and text.

    Returns:
        mass and standard deviation [kg].

    Raises:
        UrEnergyError: a bag cannot be used.
    """
    found = identify_payload(model, loaded, empty=unloaded, progress=progress).estimate
    return found.shown_mass, found.mass_std


def _mounting(
    recording: Recording, robot: RobotDescription, model: EnergyModel
) -> tuple[Array, str, float]:
    """Gravity [3], m/s^2, its source, and the payload mass in target_moment [kg] (NaN: unknown)."""
    if recording.torque_reference == "none":
        return model.setup.gravity, "model", float("nan")
    found = estimate_dynamics(recording.torque_telemetry(), robot, configured=None).recordings[0]
    told = found.setup.payload.mass if found.mass_std < 0.1 else float("nan")
    if found.setup_source != "estimated":
        return model.setup.gravity, "model", told
    return found.setup.gravity, "estimated", told
