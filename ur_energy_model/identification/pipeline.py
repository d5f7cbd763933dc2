# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Identification of an arm: from bags to a model with its metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model import __version__
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.same_origin import RecordedArm, check_one_arm
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.telemetry_checks import serials
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.assembly import (
    OF_TYPE,
    ArmPrior,
    BodyResults,
    FittedDrives,
    fit_drives,
)
from ur_energy_model.identification.dynamics import (
    RecordingDynamics,
    estimate_setups,
    inertia_from_torque,
)
from ur_energy_model.identification.evaluation import Metrics, measure
from ur_energy_model.identification.friction_data import AUTO
from ur_energy_model.identification.friction_fit import (
    CurrentRegression,
    current_regression,
    with_presliding,
)
from ur_energy_model.identification.joint_meter import joint_evidence, with_cable
from ur_energy_model.identification.kept_parts import KeptTime
from ur_energy_model.identification.mounting_search import FoundMounting, find_mounting
from ur_energy_model.identification.null_models import (
    KEY,
    fit_current_null,
    fit_power_null,
)
from ur_energy_model.identification.payload_check import (
    PayloadCheck,
    check_payload,
    check_together,
)
from ur_energy_model.identification.power_fit import PowerFitResult, with_capacitor_energy
from ur_energy_model.identification.power_structures import (
    PHYSICAL,
    JointPowerEvidence,
    added_power_model,
    expected_resistance,
)
from ur_energy_model.identification.quality import MOTION_WORDS
from ur_energy_model.identification.recording import (
    Recording,
    SessionData,
    read_recording,
)
from ur_energy_model.identification.target_moment import SetupPrior
from ur_energy_model.identification.torque_constants import JointEstimate
from ur_energy_model.identification.wall_fit import fit_wall
from ur_energy_model.many_bags import BagExecutor, BagResult, Result
from ur_energy_model.model.between_arms import LITTLE_MOTION, MOTION, motion_error
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import same_serial
from ur_energy_model.typing import Mask, Progress


@dataclass(frozen=True)
class IdentificationOptions:
    """What to identify, and what the user states.

    Attributes:
        friction: name of a friction law, or "auto" to choose one per joint.
        power_model: name of the power model: "physical", or of one that a room adds.
        setup: mounting and payload as stated, a prior for the estimate.
        payload: on the flange, if another one is set in the controller; None for the one
            in target_moment, or the one identified where the currents contradict that.
        identify_tensors: instead of using the robot file's link tensors.
        prior: from other arms of a fleet.
        same_arm: the recordings are of one arm, whatever the serial numbers are.
    """

    friction: str = AUTO
    power_model: str = PHYSICAL
    setup: Setup | None = None
    payload: Payload | None = None
    identify_tensors: bool = False
    prior: ArmPrior = OF_TYPE
    same_arm: bool = False


@dataclass(frozen=True)
class Identification:
    """Result of `identify`.

    Attributes:
        robot: the arm as its robot file describes it.
        model: ready to save.
        joints: current stage per joint (comparison of laws, sources).
        power: power stage.
        fit: metrics of the fitted recordings.
        validation: metrics of the recordings held out.
        warnings: for the user, one line each.
        payload_checks: what the currents of each recording show.
        failed: bags that were left out, with reasons.
        notes: how much of long recordings was used, one line each.
        contradictions: statements about the fitted recordings that these do not agree
            with; also in `warnings`.
    """

    robot: RobotDescription
    model: EnergyModel
    joints: tuple[JointEstimate, ...]
    power: PowerFitResult
    fit: tuple[Metrics, ...]
    validation: tuple[Metrics, ...]
    warnings: tuple[str, ...]
    payload_checks: tuple[PayloadCheck, ...] = ()
    failed: tuple[BagResult[Any], ...] = ()
    notes: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()


def identify(
    bags: Sequence[str | Path],
    robot: RobotDescription | str,
    options: IdentificationOptions | None = None,
    *,
    validate: Sequence[str | Path] = (),
    progress: Progress | None = None,
    each: BagExecutor | None = None,
) -> Identification:
    """Identify an arm from one or more bags; memory does not grow with their length.

    The stages: mounting, payload and reflected inertia from target_moment (Clochiatti et
    al. 2024, eq. 2, 7-9), torque constant and friction from currents (eq. 10-18), the
    constants of the motors and the supply from bus power (eq. 19-23, and EcBot, eq.
    13-21).

    The model depends neither on the order of the bags nor on what reads them.

    Args:
        bags: recordings to fit.
        robot: the arm, or its name.
        options: what to identify, and what the user states.
        validate: recordings that are held out, for metrics only.
        progress: called with the finished share and the current step.
        each: reads and compares bags, leaving out those that fail; None does it here,
            where a bag that fails is an error.
    """
    options = options or IdentificationOptions()
    added_power_model(options.power_model)  # refused before recordings are read
    described = load_robot(robot) if isinstance(robot, str) else robot
    with ExitStack() as opened:
        work = _Work(each, progress)
        given = work.read(bags, described, opened, KeptTime.of_each(len(bags)))
        if not options.same_arm:
            check_one_arm(
                [
                    RecordedArm(recording.path, recording.info, recording.constants)
                    for recording in given
                ]
            )
        held_out = work.read(validate, described, opened, None)
        arm = ArmFit(described, given, held_out, options)
        pairs = list[tuple[Recording, RecordingDynamics]]()

        def check(model: EnergyModel) -> list[PayloadCheck]:
            pairs[:] = [*zip([*given, *held_out], arm.compared(), strict=True)]
            own = [
                (recording.motion_only(), dynamics.alone())
                for recording, dynamics in pairs
            ]
            found = work.run(partial(_check, model, arm.body.robot), own[: len(given)])
            return [
                replace(one, source=str(bag))
                for bag, entry in found
                for one in entry or ()
            ]

        drives, checks = arm.checked_fit(check)
        drives = drives._replace(model=_with_provenance(drives, arm, given))
        model = with_capacitor_energy(drives.model, arm.fitted)
        model = with_cable(model, arm.fitted)
        model = with_presliding(model, arm.fitted, arm.dynamics()[: len(given)])
        walls = [each.wall for each in sorted(given, key=attrgetter("rank"))]
        model = replace(model, wall=fit_wall(walls, described.generation))
        # A single fitted recording defines the model's session, all others are anchored
        # on theirs.
        content = [
            (recording, dynamics.alone(), k >= len(given) or len(given) > 1)
            for k, (recording, dynamics) in enumerate(pairs)
        ]
        measured = [
            None if entry is None else replace(entry, bag=str(bag))
            for bag, entry in work.run(partial(_measure, model), content)
        ]
        fit, validation = (
            tuple(entry for entry in part if entry)
            for part in (measured[: len(given)], measured[len(given) :])
        )
        payloads = _payload_contradictions(arm, checks, replaced=options.payload is None)
        doubts = [each.words() for each in payloads]
        model = replace(
            model,
            fit=tuple(entry.for_model_file() for entry in fit),
            validation=tuple(entry.for_model_file() for entry in validation),
            provenance={**model.provenance, **({DOUBTS: doubts} if doubts else {})},
        )
        lines = [*doubts, *(line for each in given for line in each.quality.warnings)]
        lines += [] if arm.body.estimate is None else arm.body.estimate.warnings
        lines += _not_identifiable(model, arm)
        lines = list(dict.fromkeys(lines))
        for recording in held_out:
            known = serials(model, recording.info)
            if same_serial(*known.values()) is False:
                lines.append(
                    f"{recording.path} is of arm {known['recording']}, the fitted recordings of "
                    f"arm {known['model']}: it does not validate the model"
                )
        for metrics in validation:
            if metrics.motion in ("fitted", "same motion again"):
                lines.append(f"{metrics.bag}: {MOTION_WORDS[metrics.motion]}")
        return Identification(
            robot=described,
            model=model,
            joints=drives.joints,
            power=drives.power,
            fit=fit,
            validation=validation,
            warnings=tuple(lines),
            payload_checks=tuple(checks),
            failed=tuple(work.failed),
            notes=tuple(
                line for recording in given for line in _note_of_used_time(recording)
            ),
            contradictions=(
                *payloads,
                *(one for recording in given for one in recording.quality.contradictions),
            ),
        )


def _payload_contradictions(
    arm: ArmFit, checks: Sequence[PayloadCheck], *, replaced: bool
) -> tuple[Contradiction, ...]:
    """Payloads that the currents contradict.

    Args:
        arm: the fit of its recordings.
        checks: of the payload in each.
        replaced: whether the identified ones are used instead.
    """
    found = {
        check.source: check.contradiction(replaced=replaced)
        for check in arm.contradicted.values()
    }
    for check in checks:
        if check.contradicts:
            found.setdefault(check.source, check.contradiction(replaced=False))
    return tuple(found.values())


DOUBTS = "payload_doubts"
"""Key in the provenance of a model: payloads that currents contradict, one line each."""


def payload_doubts(model: EnergyModel) -> list[str]:
    """What the currents of the model's own recordings contradict, for the user, one line each."""
    stated: Any = model.provenance.get(DOUBTS)
    return [str(line) for line in stated] if isinstance(stated, list) else []


_PAYLOADS = 3  # payloads tried, one after the other, where it is identified


class ArmFit:
    """Mounting, payload and inertias of the arm in every recording, and the fit of its drives.

    From target_moment; without it, the mounting from currents. Sums are rounded, blocks
    of cross-validation cut, and what a single recording decides is decided, with the
    longest recording first, those of equal length by hash, so that results do not depend
    on the order of the bags.

    Args:
        robot: the arm as its robot file describes it.
        given: recordings to fit.
        held_out: recordings whose setups are wanted, too.
        options: what to identify, and what the user states.
        known: a model known before, for `CurrentRegression` and for the mounting that no
            recording shows.
    """

    def __init__(
        self,
        robot: RobotDescription,
        given: Sequence[SessionData],
        held_out: Sequence[SessionData],
        options: IdentificationOptions,
        known: EnergyModel | None = None,
    ) -> None:
        self.given = given
        self.options = options
        self._model = known
        self.fitted = sorted(given, key=lambda recording: recording.rank)
        self._recordings = [*self.fitted, *held_out]
        robot, estimate = estimate_setups(
            self._recordings, self.fitted, robot, options.setup, options.identify_tensors
        )
        fallback = None if known is None else known.setup
        fallback = fallback if estimate is None else estimate.setup
        stated_for_all = (estimate, options.setup, fallback)
        dynamics = [
            RecordingDynamics(robot, each.info, *stated_for_all)
            for each in self._recordings
        ]
        stated = dynamics[0].stated(self.fitted[0].controller_payload)
        self.mounting: FoundMounting | None = None
        if estimate is None:
            self.mounting = find_mounting(robot, self.fitted, stated.setup)
        if self.mounting and self.mounting.contradicted and options.setup is None:
            stated = SetupPrior(self.mounting.setup, "estimated")
            dynamics = [replace(own, configured=self.mounting.setup) for own in dynamics]
        self._dynamics = dynamics
        self._carried: dict[SessionData, Payload | None]
        self._carried = dict.fromkeys(self._recordings, options.payload)
        # Payloads identified in place of set ones, by recording
        self.contradicted: dict[str, PayloadCheck] = {}
        inertia = inertia_from_torque(robot, estimate, options.prior.inertia)
        self.body = BodyResults(robot, estimate, stated, inertia)
        # Learning compares with the model in use instead.
        self.null = fit_current_null(self.fitted) if known is None else None
        self.power_null = fit_power_null(self.fitted, robot)
        found = [each.constants for each in self.fitted if each.constants is not None]
        self.stated = ControllerConstants.joined(found, robot.dof)

    def checked_fit(
        self, check: Callable[[EnergyModel], Sequence[PayloadCheck]]
    ) -> tuple[FittedDrives, list[PayloadCheck]]:
        """The drives, and what the currents of each recording show of its payload.

        Friction and torque constants depend on the payload and the payload on them, so
        the two are identified in turn, a few times. `check` is `check_payload` of every
        fitted recording. Until the payloads are found, an arm has the controller's
        inertias: its own would take the place of a payload in the currents of
        acceleration.
        """
        free = self.options.payload is None
        checks: list[PayloadCheck] = []
        for _ in range(1 + _PAYLOADS if free else 1):
            self._carry(checks)
            currents = self._currents()
            alone = check(self._drives(currents.fit(own_inertia=False)).model)
            checks = check_together(alone, self.contradicted)
            if not any(entry.contradicts for entry in checks):
                break
        joints = currents.fit()
        drives = self._drives(joints)
        meter = joint_evidence(drives.model, self.fitted)
        return drives if meter is None else self._drives(joints, meter), checks

    def _carry(self, checks: Sequence[PayloadCheck]) -> None:
        """Use the payloads identified in place of those that the currents contradict.

        That of a single recording is also the payload of those held out with the same
        setting.
        """
        first = self.fitted[0].controller_payload
        for check in filter(attrgetter("contradicts"), checks):
            before = self.contradicted.pop(check.source, check).controller_mass
            doubt = replace(check, controller_mass=before)
            if doubt.contradicts:
                self.contradicted[check.source] = doubt
            for recording in self._recordings:
                alike = np.array_equal(
                    recording.controller_payload, first, equal_nan=True
                )
                if str(recording.path) == check.source or (
                    len(self.given) == 1 and alike
                ):
                    self._carried[recording] = (
                        check.payload if doubt.contradicts else None
                    )

    def dynamics(self) -> list[RecordingDynamics]:
        """Of the fitted recordings and those held out."""
        pairs = zip(self._recordings, self._dynamics, strict=True)
        return [
            replace(own, carried=self._carried[recording]) for recording, own in pairs
        ]

    def compared(self) -> list[RecordingDynamics]:
        """The same in the order of the user, of those held out last."""
        count = len(self.fitted)
        own = self.dynamics()
        return [*(own[self.fitted.index(each)] for each in self.given), *own[count:]]

    def _currents(self) -> CurrentRegression:
        """The currents of the fitted recordings, with the payloads carried."""
        body = self.body
        law = self.options.friction
        fitted = self.dynamics()[: len(self.fitted)]
        known = self._model
        return current_regression(
            self.fitted, fitted, body.robot, body.inertia, law, known
        )

    def _drives(
        self, joints: tuple[JointEstimate, ...], meter: JointPowerEvidence | None = None
    ) -> FittedDrives:
        """The joints as fitted to the currents, and the power model from bus power."""
        body = self.body
        payload = self._carried[self.fitted[0]]
        if self.null is not None:
            joints = tuple(
                replace(
                    joint,
                    comparison={**joint.comparison, "null": error},
                    reason=f"{joint.reason}; the null model has {error:.4g} A",
                )
                if np.isfinite(error)
                else joint
                for joint, error in zip(joints, self.null.held_out.tolist(), strict=True)
            )
        places = [self.given.index(recording) for recording in self.fitted]
        joints = tuple(joint.in_order(places) for joint in joints)
        if self.mounting is not None:
            errors = zip(joints, self.mounting.load_error.tolist(), strict=True)
            joints = tuple(replace(joint, load_error=error) for joint, error in errors)
        powers = [recording.power for recording in self.fitted]
        kind = self.options.power_model
        prior = self.options.prior.torque_constant
        drives = fit_drives(
            body, joints, powers, kind, prior, self._order(), self.stated, meter=meter
        )
        model = drives.model if payload is None else drives.model.with_payload(payload)
        lengths = {"bags": [{"duration": recording.duration} for recording in self.given]}
        return drives._replace(
            model=replace(model, provenance={**lengths, **model.provenance})
        )

    def _order(self) -> list[int] | None:
        """Numbers of the given recordings in order of time; None where it is not known."""
        began = [each.began for each in self.given]
        known = [time for time in began if time is not None]
        if len(known) < len(began):
            return None
        return [int(number) for number in np.argsort(known, kind="stable")]

    @property
    def null_models(self) -> dict[str, Any]:
        """The null models of currents and power, for the provenance of a model."""
        current = None if self.null is None else self.null.coefficients
        found = {"current": current, "power": self.power_null}
        return {
            KEY: {name: values for name, values in found.items() if values is not None}
        }


def _with_provenance(
    drives: FittedDrives, arm: ArmFit, given: Sequence[Recording]
) -> EnergyModel:
    """The model with what it was identified from, its arm that of the longest recording."""
    info = arm.fitted[0].info
    bags = []
    for each in given:
        bag: dict[str, Any] = {"path": str(each.path)}
        for name in ("sha256", "samples", "duration", "rate", "cutoff"):
            bag[name] = getattr(each, name)
        bag["position_delay"] = each.delay
        bag["controller_time"] = list(each.controller_time)
        bag["host_time"] = (
            None if each.host_time is None else list(map(_iso, each.host_time))
        )
        if each.kept is not None:
            bag["seconds_of_motion_used"] = each.kept.motions
            bag["seconds_of_samples_used"] = each.kept.samples
        bags.append({**bag, "visited": each.quality.visited.as_json()})
    factors = drives.power.factors.items()
    provenance = {
        **drives.model.provenance,
        "package_version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "serial": info.serial,
        "firmware": info.controller_version,
        "simulated": any(recording.info.simulated for recording in given),
        "bags": bags,
        MOTION: _motion(drives.power, given),
        "power_factors": {
            name: {"value": value, "std": std} for name, (value, std) in factors
        },
        **arm.null_models,
    }
    return replace(drives.model, provenance=provenance)


def _motion(power: PowerFitResult, given: Sequence[Recording]) -> dict[str, float]:
    """Energy above standstill that the power model was fitted to [J], and its time [s]."""
    energy = 0.0
    seconds = 0.0
    for recording in given:
        taken, count = recording.power.motion(power.coefficients)
        period = recording.duration / max(recording.samples, 1)
        energy += taken * period
        seconds += count * period
    return {"energy": energy, "seconds": seconds}


def _iso(stamp: int) -> str:
    """A host time [ns] in UTC, ISO 8601."""
    return datetime.fromtimestamp(1e-9 * stamp, timezone.utc).isoformat(
        timespec="seconds"
    )


class _Work:
    """What is done with each bag, by a `BagExecutor` or here; `failed` are those left out."""

    def __init__(self, each: BagExecutor | None, progress: Progress | None) -> None:
        self._each = each
        self._progress = progress
        self.failed: list[BagResult[Any]] = []

    def read(
        self,
        bags: Sequence[str | Path],
        robot: RobotDescription,
        opened: ExitStack,
        kept: KeptTime | None,
    ) -> list[Recording]:
        """Recordings that can be used, in the order of the bags, which `opened` closes."""
        work = partial(_read, robot, kept, None if self._each else self._progress)
        recordings = [
            opened.enter_context(closing(found)).renamed(bag)
            for bag, found in self._results(work, [Path(bag) for bag in bags], None)
            if found is not None
        ]
        if bags and not recordings:
            others = f" (and {len(bags) - 1} more bags)" if len(bags) > 1 else ""
            raise IdentificationError(
                f"no bag can be used: {self.failed[0].reason}{others}"
            )
        return recordings

    def run(
        self, work: partial[Result], content: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[Path, Result | None]]:
        """Bags and results, for what starts with their recordings; None where one failed."""
        return self._results(work, [each[0].path for each in content], content)

    def _results(
        self, work: partial[Result], bags: Sequence[Path], content: Sequence[Any] | None
    ) -> Iterator[tuple[Path, Result | None]]:
        if self._each is None:
            for k, bag in enumerate(bags):
                yield bag, work(bag) if content is None else work(bag, content[k])
            return
        for result in self._each(work, bags, self._progress, content):
            if result.value is None:
                self.failed.append(result)
            yield result.bag, result.value


# Work on one bag; functions of modules, which workers can be sent.


def _read(
    robot: RobotDescription, kept: KeptTime | None, progress: Progress | None, path: Path
) -> Recording:
    recording = read_recording(path, robot, kept=kept, progress=progress)
    try:
        recording.quality.require_usable()
    except IdentificationError:
        recording.close()
        raise
    return recording


def _check(
    model: EnergyModel,
    robot: RobotDescription,
    path: Path,
    fitted: tuple[SessionData, RecordingDynamics],
) -> tuple[PayloadCheck, ...]:
    return check_payload(model, robot, *fitted)


def _measure(
    model: EnergyModel, path: Path, compared: tuple[Recording, RecordingDynamics, bool]
) -> Metrics:
    recording, dynamics, anchor = compared
    return measure(model, recording.renamed(path), dynamics, anchor=anchor)


# Lines for the user: what recordings do not determine, and how much of long ones is used.

# relative standard deviation from which a constant counts as not identifiable
_VAGUE = 0.3
# R2 of a current in motion below which the stated setup is probably wrong
_UNEXPLAINED = 0.8
_MOUNTINGS = {
    "default": "are assumed, upright and without payload",
    "rtde": "are assumed upright and as recorded",
    "given": "are as stated",
}
_WHOLE = 0.99
"""Share of a recording that counts as all of it: steps between its parts are not
counted."""


def _not_identifiable(model: EnergyModel, arm: ArmFit) -> Iterator[str]:
    """A line for each quantity that the recordings do not determine."""
    robot = arm.body.robot
    mounting = arm.mounting
    torque = arm.body.estimate is not None

    def names(which: Mask) -> str:
        return ", ".join(
            j.name for j, named in zip(model.joints, which, strict=True) if named
        )

    if mounting is not None and mounting.contradicted:
        vector = ", ".join(f"{value:.2f}" for value in mounting.setup.gravity)
        yield (
            "no target_moment recorded; currents show the base tilted by "
            f"{np.degrees(mounting.tilt):.0f} degrees from what was stated or assumed (gravity "
            f"{vector} m/s^2, payload {mounting.setup.payload.mass:.1f} kg); "
            + (
                "the setup stated with --gravity and --payload is used all the same: check it"
                if model.setup_source == "given"
                else "that is used; state it with --gravity and --payload"
            )
        )
    elif not torque:
        yield (
            "no target_moment recorded: mounting and payload "
            f"{_MOUNTINGS.get(model.setup_source, model.setup_source)} (others: --gravity and "
            "--payload), motor inertias come from currents or priors"
        )
    for entry in () if torque else model.fit:
        r2 = np.array([row["r2"] for row in entry["current"] or []], dtype=float)
        if (r2 < _UNEXPLAINED).any():
            yield (
                f"{entry['bag']}: {names(r2 < _UNEXPLAINED)}: the model explains little of the "
                "current; is the arm mounted and loaded as assumed? State both with --gravity and "
                "--payload"
            )
    motion = model.provenance[MOTION]
    if model.bus.source == "bus_power" and motion_error(model) > LITTLE_MOTION:
        yield (
            f"bus power shows {motion['energy']:.0f} J of motion in {motion['seconds']:.1f} s, "
            f"known to {100 * motion_error(model):.0f} %: losses of the drives are hardly more "
            "certain than those of the type; record more motion"
        )
    prior = np.array(
        [joint.source["reflected_inertia"] == "prior" for joint in model.joints]
    )
    nominal = np.isfinite(robot.reflected_inertia)
    shares = np.array(
        [
            j.std["reflected_inertia"] / max(j.reflected_inertia, 1e-9)
            for j in model.joints
        ]
    )
    for which, words in (
        (prior & nominal, "; the robot file's value is used"),
        (prior & ~nominal, " and not in the robot file; a typical one is used"),
    ):
        if which.any():
            low, high = (
                100 * CONFIDENCE * end(shares[which]) for end in (np.min, np.max)
            )
            width = f"{high:.0f}" if high - low < 1 else f"{low:.0f} to {high:.0f}"
            yield f"{names(which)}: motor inertia not identifiable{words}, ± {width} %"
    vague = np.array(
        [j.std["torque_constant"] > _VAGUE * j.torque_constant for j in model.joints]
    )
    if vague.any():
        yield (
            f"{names(vague)}: torque constant not identifiable from these recordings (the "
            "links need too little torque); record target_moment or add it to the robot file"
        )
    if model.bus.source != "bus_power":
        yield (
            "no bus power recorded: winding resistances, driver losses and standby power are "
            "priors (source prior), so electrical energy has wide intervals"
        )
        missing = ~np.isfinite(robot.winding_resistance)
        if missing.any():
            value, spread = expected_resistance(robot)
            share = 100 * CONFIDENCE * float((spread / value)[missing].max())
            yield (
                f"robot file {robot.name} has no winding resistance: typical ones are used, "
                f"± {share:.0f} %"
            )


def _note_of_used_time(recording: Recording) -> Iterator[str]:
    """A line for a recording that is longer than what the fits use of it."""

    def minutes(seconds: float) -> str:
        return f"{seconds / 60.0:.{0 if seconds >= 570.0 else 1}f}"

    kept = recording.kept
    whole = recording.duration
    if kept is not None and kept.samples < _WHOLE * whole:
        yield (
            f"{recording.path}: uses {minutes(kept.motions)} of {minutes(whole)} minutes for "
            f"torque constants and friction, {minutes(kept.samples)} for the bus capacitor "
            "and the errors of the fit: parts spread over the recording and those with the "
            "most varied motion and temperature; standby and winding losses use all of it"
        )
