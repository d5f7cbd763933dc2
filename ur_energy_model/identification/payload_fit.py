# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fit of the payload to the motor currents of one recording, and the priors of links and drives.

Torque constants are identified with the links' published masses (torque_constants.py), so
the weights of the links and of a payload are uncertain in different ways:

- The gain of a drive against the links was identified in the same arm. Its error comes
  from changes of friction between recordings. The gain is well known for joints whose links
  weigh far more than their friction, and hardly known for wrists.
- The gain against a payload has a further error, the weight of the links beyond their
  published masses (cables, covers and screws belong to no published link). One part of it is
  common to all joints, and each joint has another part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.filtered_motion import (
    NO_MOTION,
    SHORTEST_MOTION,
    FilteredMotion,
    ParallelFilter,
)
from ur_energy_model.identification.least_squares import BlockedGram
from ur_energy_model.identification.payload_columns import (
    LoadedMotion,
    PayloadColumns,
    loaded_motions,
    solve_payload,
)
from ur_energy_model.identification.physical_consistency import possible_inertia
from ur_energy_model.identification.torque_constants import load_errors
from ur_energy_model.model.controller_constants import CONTROLLER
from ur_energy_model.model.energy_model import (
    CalibrationLayout,
    EnergyModel,
    PayloadCalibration,
)
from ur_energy_model.model.friction_terms import LOAD
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import (
    COUNT,
    FIRST_MOMENT,
    MASS,
    STATIC,
    TENSOR,
    Payload,
    point_tensor,
    tensor_of,
)
from ur_energy_model.typing import Array

LINK_MASS_ERROR = 0.005
"""Relative error of a link's mass beyond the error that the gain of its joint includes, assumed."""
LINK_CENTER_ERROR = 0.001
"""Error of a link's centre of mass [m], assumed."""
LINK_EXCESS = 0.02
LINK_EXCESS_ERROR = 0.02
"""Relative weight of the links beyond the published one, common to all joints, and its standard
deviation: cables, covers and screws add weight only. Torque constants from links and from known
payloads differed by 1 to 3 % on three arms."""
OWN_ERROR = 0.02
"""Relative error of the links' weight at each joint, beyond the common error, as the joints of one
arm differed."""
REPEATABLE = 0.003
"""Relative change of a drive's gain between recordings, assumed. Differences from the payload set
in the controller are reported if they exceed this share of the links' mass."""
_FRICTION_SHARE = 0.015
"""Error of the links' weight as a share of the friction, since the regression of a model confuses a
part of both: RMS of seven models from a minute of motion over the shoulder lift, elbow and wrist 1
of a UR10e."""
_WITH_LOAD_FRICTION = 0.3
"""Error of a torque constant over its stated standard deviation (without the part by the links'
weight) where the friction law has load friction: RMS 0.26 over 70 shoulder lifts and elbows of a
UR10e from 7 to 30 s of motion. With a law without load friction, the torque constant includes this
friction: RMS 0.93 over 12 joints from 7 and 15 s."""
_EMPTY_FLANGE = np.array([0.3, 0.03, 0.03, 0.03])
"""Standard deviations of a body that may be mounted on an "empty" flange: mass [kg] and first
moments [kg m]."""
_LEAST = 1e-9  # least weight of links [N m], and least deviation of their parameters
_UNKNOWN_SHARE = 0.1
"""Standard deviation of the payload over the mass of all links beyond which the payload is not
determined: the 95 % interval is then about half of the rated payload to either side."""
_ROUNDS = 6  # largest number of rounds in which payload and friction are fitted in turn
_CONVERGED = 1e-3
"""Change of mass [kg] and first moments [kg m] between rounds below which the fit has
converged."""
_ONE_SIDED_FRICTION = 0.01
"""Relative error of a torque constant that currents cannot distinguish from load friction
that depends on the direction of power flow, assumed."""
_LEAST_MASS = 0.01  # least mass whose centre of mass is reported [kg]
_SIGNIFICANT = 3.0  # least mass whose centre of mass is reported, in standard deviations


@dataclass(frozen=True)
class PayloadEstimate:
    """The identified payload of an arm with n joints.

    Attributes:
        payload: mass, centre (flange frame), physically possible inertia (uncertain).
        shown_mass: estimate without constraint [kg]; negative where the torque is lower
            than the torque of the links.
        mass_std: standard deviation of the mass [kg], which includes correlated residuals
            and errors of links and torque constants.
        center_std: standard deviation of the centre of mass [3], m; NaN where the mass is
            too small for a centre of mass.
        torque_rms: residual per joint of the model with this payload and calibrated
            torque constants [n], N m, joint side; NaN for joints that did not move.
        misfit: `torque_rms` over the residual in the model's own recordings, median of
            the joints; NaN where the model has no such residual.
        torque_constants: torque constants from links and payload together, motor side
            [n], N m/A.
        torque_constants_std: standard deviations of the torque constants [n], N m/A.
        calibration: posterior of links and drives after this recording.
        samples: number of torque samples, each joint counted.
        joint: mean and covariance of inertial parameters and calibration together [10 + 6
            n].
        prior: prior of the calibration, which is included in `joint`.
        gravity: gravity in the base frame [3], m/s^2, as used.
        gravity_source: "model", or "estimated" from the bag's target_moment.
        controller_mass: payload set in the controller, from target_moment [kg]; NaN if
            unknown.
        warnings: warnings for the user, one line each.
        contradictions: contradictions between the payload set in the controller and the
            currents; also in `warnings`, in words.
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
    joint: tuple[Array, Array]
    prior: PayloadCalibration
    gravity: Array
    gravity_source: str = "model"
    controller_mass: float = float("nan")
    warnings: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of `shown_mass` [kg]."""
        half = CONFIDENCE * self.mass_std
        return self.shown_mass - half, self.shown_mass + half


def estimate_payload(
    model: EnergyModel,
    robot: RobotDescription,
    gravity: Array,
    motions: Iterable[FilteredMotion],
    narrow: ParallelFilter,
    *,
    known_mass: float | None = None,
    calibration: PayloadCalibration | None = None,
    free_drives: bool = False,
) -> PayloadEstimate:
    """Payload from the filtered motion of one recording.

    Friction depends on the load and thus on the payload, so the fit is repeated with the
    payload found until it converges.

    Args:
        model: model of the arm, identified from recordings with known or no payload.
        robot: the arm, n joints.
        gravity: gravity in the base frame [3], m/s^2, of this recording.
        motions: motions of the recording; iterated several times.
        narrow: the recording's filter, for model and measurement alike.
        known_mass: calibrates the drives [kg]; 0 where the flange counts as empty.
        calibration: calibration from earlier recordings; None for the model's.
        free_drives: friction is as uncertain as for an arm not yet identified; for
            calibrations with free torque constants.

    Raises:
        IdentificationError: too little motion.
    """
    columns = PayloadColumns(model, robot, gravity)
    if calibration is None:
        calibration = model.payload_calibration
    payload = np.zeros(COUNT)
    payload[MASS] = known_mass or 0.0
    kept = list[LoadedMotion]()
    for _ in range(_ROUNDS):
        data = _accumulated(columns, motions, narrow, kept, payload)
        joints = [int(j) for j in np.flatnonzero(data.moving >= SHORTEST_MOTION)]
        if not joints:
            raise IdentificationError(NO_MOTION)
        change = columns.friction_change(data.temperature)
        if free_drives:
            change = np.ones(columns.dof)
        error_std = columns.error_std(change, data.elapsed)
        total = data.blocks.sum(axis=0)
        if calibration is None:
            prior = _prior_of_model(columns, model, empty=known_mass == 0.0)
        else:
            prior = _prior_of_run(columns, calibration, total, free_drives=free_drives)
        values, covariance, rms = solve_payload(
            columns, data.blocks, joints, prior, error_std, known_mass
        )
        moved = float(np.abs(values[:COUNT] - payload)[STATIC].max())
        payload = values[:COUNT]
        if moved < _CONVERGED:
            break
    posterior = PayloadCalibration.from_vector(values[COUNT:], covariance[COUNT:, COUNT:])
    mass_std = float(np.sqrt(covariance[MASS, MASS]))
    if not mass_std < _UNKNOWN_SHARE * columns.masses.sum():
        raise IdentificationError(
            f"payload not determined (± {CONFIDENCE * mass_std:.1f} kg), because it hardly loads "
            "the joints that move; record a motion of all joints (ur_energy excite)"
        )
    constant = columns.torque_constant / posterior.torque_gain
    relative = posterior.torque_gain_std / posterior.torque_gain
    found = possible_payload(payload, mass_std)
    return PayloadEstimate(
        payload=found,
        shown_mass=float(payload[MASS]),
        mass_std=mass_std,
        center_std=_center_std(found, float(payload[MASS]), covariance),
        torque_rms=rms,
        misfit=_misfit(model, rms),
        torque_constants=constant,
        torque_constants_std=constant * np.hypot(relative, _ONE_SIDED_FRICTION),
        calibration=posterior,
        samples=int(total[joints, columns.one, columns.one].sum()),
        gravity=gravity,
        joint=(values, covariance),
        prior=prior,
    )


class _PayloadData(NamedTuple):
    """What is accumulated of a recording's motions for one round of the fit.

    Attributes:
        blocks: Gram matrices of the payload columns [blocks, n, width, width].
        moving: time in motion of each joint [n], s.
        temperature: mean temperature of each joint [n], degC; NaN where not recorded.
        elapsed: time from the first to the last sample [s].
    """

    blocks: Array
    moving: Array
    temperature: Array
    elapsed: float


def _accumulated(
    columns: PayloadColumns,
    motions: Iterable[FilteredMotion],
    narrow: ParallelFilter,
    kept: list[LoadedMotion],
    payload: Array,
) -> _PayloadData:
    """Data of all motions, their friction that with this payload.

    Args:
        columns: columns of the arm, n joints.
        motions: motions of the recording.
        narrow: filter of the recording.
        kept: motions whose columns are known from the round before; see `loaded_motions`.
        payload: inertial parameters [10].

    Raises:
        IdentificationError: there are no motions.
    """
    grams = BlockedGram()
    one = columns.one
    temperature = np.zeros(columns.dof)
    moving = np.zeros(columns.dof)
    count = 0
    elapsed = 0.0
    for loaded in loaded_motions(columns, motions, narrow, kept):
        temperature += loaded.motion.temperature.sum(axis=0)
        count += len(loaded.motion)
        elapsed = float(loaded.motion.time[-1]) - loaded.start
        for gram, duration in loaded.gram_matrices(payload):
            grams.accumulate(gram, duration)
            moving += loaded.period * gram[:, one, one]
    if not count:
        raise IdentificationError(NO_MOTION)
    return _PayloadData(grams.blocks, moving, temperature / count, elapsed)


def _prior_of_model(
    columns: PayloadColumns, model: EnergyModel, *, empty: bool
) -> PayloadCalibration:
    """Links and drives of an arm as its model describes them; see `calibration_prior`."""
    factor = np.array([joint.load_factor for joint in model.joints])
    repeated = np.diag(np.full(columns.dof, REPEATABLE**2))
    relative = repeated + _gain_covariance(model)
    covariance = np.outer(factor, factor) * relative
    return calibration_prior(
        columns, factor, covariance, stated=_stated_error(model), empty=empty
    )


def _prior_of_run(
    columns: PayloadColumns,
    calibration: PayloadCalibration,
    total: Array,
    *,
    free_drives: bool,
) -> PayloadCalibration:
    """Links and drives of an arm calibrated before, in another recording.

    Its gains change slightly between recordings; free ones change as much as friction
    lets them.

    Args:
        columns: columns of the arm, n joints.
        calibration: calibration from earlier recordings.
        total: sum of the Gram matrices of the payload columns [n, width, width].
        free_drives: see `estimate_payload`.
    """
    covariance = calibration.covariance.copy()
    gains = CalibrationLayout(columns.dof).link_gain
    own: Array | float = REPEATABLE
    if free_drives:
        samples = np.maximum(total[:, columns.one, columns.one], 1.0)
        weight = np.sqrt(total[:, columns.bare, columns.bare] / samples)
        friction = _FRICTION_SHARE * columns.typical_friction / np.maximum(weight, _LEAST)
        own = np.hypot(REPEATABLE, np.minimum(friction, 1.0))
    covariance[gains, gains] += np.diag((own * calibration.link_gain) ** 2)
    return replace(calibration, covariance=covariance)


def _center_std(payload: Payload, mass: float, covariance: Array) -> Array:
    """Standard deviation of a centre of mass [3], m; NaN where there is none.

    Args:
        payload: payload as identified.
        mass: mass of its inertial parameters [kg].
        covariance: covariance of the unknowns, which begin with the inertial parameters.
    """
    center = payload.center_of_mass
    if not (payload.mass > 0.0 and center.any()):
        return np.full(3, np.nan)
    slopes = np.concatenate([-center[:, None], np.eye(3)], axis=1) / mass
    return np.asarray(np.sqrt(np.diag(slopes @ covariance[STATIC, STATIC] @ slopes.T)))


def _misfit(model: EnergyModel, rms: Array) -> float:
    """Residual torques [n], N m, over the residuals in the model's recordings, median of joints."""
    usual = np.array(
        [
            joint.gear_ratio * joint.torque_constant * joint.current_residual
            for joint in model.joints
        ]
    )
    known = (usual > 0) & np.isfinite(rms)
    if not known.any():
        return float("nan")
    return float(np.median(rms[known] / usual[known]))


def possible_payload(payload: Array, mass_std: float) -> Payload:
    """The payload nearest to inertial parameters that is physically possible.

    Args:
        payload: inertial parameters at the flange [10], kg, kg m, kg m^2.
        mass_std: standard deviation of the mass [kg]; a payload that hardly differs from
            none has no centre of mass.
    """
    mass = float(payload[MASS])
    if mass <= max(_LEAST_MASS, _SIGNIFICANT * mass_std):
        return Payload(max(mass, 0.0))
    center = payload[FIRST_MOMENT] / mass
    inertia = possible_inertia(tensor_of(payload[TENSOR]) - point_tensor(mass, center))
    return Payload(mass, center, inertia)


def calibration_prior(
    columns: PayloadColumns,
    gain: Array,
    covariance: Array,
    *,
    stated: Array | None = None,
    empty: bool = False,
) -> PayloadCalibration:
    """Published links and the drives of an arm whose payloads are to be identified.

    Where torque constants are known apart from the links, so are the gains against a
    payload.

    Args:
        columns: columns of the arm.
        gain: link gains [n].
        covariance: covariance of the link gains [n, n].
        stated: relative deviations of torque constants that the controller states [n],
            NaN for others; None for none.
        empty: whether the flange counts as empty.
    """
    center = LINK_CENTER_ERROR * columns.masses
    links = np.column_stack([LINK_MASS_ERROR * columns.masses, center, center, center])
    if empty:
        links[-1] = _EMPTY_FLANGE
    own = np.diag(np.maximum(links.ravel(), _LEAST) ** 2)
    payload = LINK_EXCESS_ERROR**2 + OWN_ERROR**2 * np.eye(len(gain))
    lighter = np.full(len(gain), 1.0 / (1.0 + LINK_EXCESS))
    if stated is not None:
        known = np.isfinite(stated)
        of_stated = np.diag(np.square(np.where(known, stated, 0.0) / gain))
        payload = np.where(known[:, None] | known, of_stated, payload)
        lighter = np.where(known, 1.0 / gain, lighter)
    whole = block_diag(own, covariance, payload)
    return PayloadCalibration(np.zeros_like(links), gain, lighter, whole)


def _stated_error(model: EnergyModel) -> Array:
    """Relative deviations of torque constants that the controller states [n], NaN for others."""
    errors = np.full(model.dof, np.nan)
    for j, joint in enumerate(model.joints):
        if joint.source.get("torque_constant") == CONTROLLER:
            errors[j] = joint.std["torque_constant"] / joint.torque_constant
    return errors


def _gain_covariance(model: EnergyModel) -> Array:
    """Covariance of the relative errors of the gains against the arm's own links [n, n]."""
    share = np.ones(model.dof)
    for j, joint in enumerate(model.joints):
        if LOAD in joint.friction.parameters:
            share[j] = _WITH_LOAD_FRICTION
    errors = load_errors(model.joints)
    return np.diag(np.square(share * errors.data)) + errors.prior
