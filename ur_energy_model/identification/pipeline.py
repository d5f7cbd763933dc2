# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Identification of an arm: from bags to a model with its metrics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from ur_energy_model import __version__
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.same_origin import RecordedArm, check_one_arm
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.arm_fit import (
    ArmFit,
    CheckedFit,
    IdentificationOptions,
)
from ur_energy_model.identification.assembly import FittedDrives
from ur_energy_model.identification.doubts import (
    DOUBTS,
    contradicted_payloads,
    not_validating,
    note_of_used_time,
    undetermined,
)
from ur_energy_model.identification.dynamics import RecordingDynamics
from ur_energy_model.identification.evaluation import Metrics, measure
from ur_energy_model.identification.joint_meter import meter_of, with_cable
from ur_energy_model.identification.kept_parts import KeptTime
from ur_energy_model.identification.payload_check import PayloadCheck, check_payload
from ur_energy_model.identification.power_fit import PowerFitResult
from ur_energy_model.identification.power_stage import with_capacitor_energy
from ur_energy_model.identification.power_structures import added_power_model
from ur_energy_model.identification.presliding import with_presliding
from ur_energy_model.identification.recording import (
    Recording,
    SessionData,
    read_recording,
)
from ur_energy_model.identification.torque_constants import JointEstimate
from ur_energy_model.identification.wall_fit import fit_wall
from ur_energy_model.many_bags import BagExecutor, BagResult, Result
from ur_energy_model.model.between_arms import MOTION
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.typing import Progress


@dataclass(frozen=True)
class Identification:
    """Result of `identify`.

    Attributes:
        robot: the arm as its robot file describes it.
        model: model that is ready to save.
        joints: result of the current stage per joint (comparison of laws, sources).
        power: result of the power stage.
        fit: metrics of the fitted recordings.
        validation: metrics of the recordings held out.
        warnings: warnings for the user, one line each.
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

    Raises:
        UrEnergyError: bags, robot or options cannot be used.
    """
    options = options or IdentificationOptions()
    added_power_model(options.power_model)  # refused before recordings are read
    described = load_robot(robot) if isinstance(robot, str) else robot
    with ExitStack() as opened:
        work = _BagWork(each, progress)
        given = work.read(bags, described, opened, KeptTime.of_each(len(bags)))
        if not options.same_arm:
            arms = [RecordedArm(one.path, one.info, one.constants) for one in given]
            check_one_arm(arms)
        held_out = work.read(validate, described, opened, None)
        arm = ArmFit(described, given, held_out, options)
        found = arm.checked_fit(partial(_check_payloads, work, arm, given))
        model = _completed(found, arm, given)
        fit, validation = _measured(work, model, arm, given, held_out)
        payloads = contradicted_payloads(
            arm, found.checks, replaced=options.payload is None
        )
        doubts = [contradiction.words() for contradiction in payloads]
        provenance = dict(model.provenance)
        if doubts:
            provenance[DOUBTS] = doubts
        model = replace(
            model,
            fit=tuple(metrics.for_model_file() for metrics in fit),
            validation=tuple(metrics.for_model_file() for metrics in validation),
            provenance=provenance,
        )
        contradictions = list(payloads)
        warnings = list(doubts)
        notes = list[str]()
        for recording in given:
            contradictions += recording.quality.contradictions
            warnings += recording.quality.warnings
            notes += note_of_used_time(recording)
        if arm.body.estimate is not None:
            warnings += arm.body.estimate.warnings
        warnings += undetermined(model, arm)
        warnings = list(dict.fromkeys(warnings))
        warnings += not_validating(model, held_out, validation)
        return Identification(
            robot=described,
            model=model,
            joints=found.drives.joints,
            power=found.drives.power,
            fit=fit,
            validation=validation,
            warnings=tuple(warnings),
            payload_checks=tuple(found.checks),
            failed=tuple(work.failed),
            notes=tuple(notes),
            contradictions=tuple(contradictions),
        )


def _completed(found: CheckedFit, arm: ArmFit, given: Sequence[Recording]) -> EnergyModel:
    """The model of the drives with provenance, capacitor, cable, presliding and wall.

    Args:
        found: checked fit of the drives.
        arm: the fit that they come from.
        given: the fitted recordings in the order of the user.
    """
    model = _with_provenance(found.drives, arm, given)
    model = with_capacitor_energy(model, arm.fitted)
    meter = found.meter
    if meter is None:
        meter = meter_of(model, arm.fitted)
    model = with_cable(model, meter)
    model = with_presliding(model, arm.fitted, arm.dynamics()[: len(given)])
    ordered = sorted(given, key=attrgetter("rank"))
    wall = fit_wall([recording.wall for recording in ordered], arm.body.robot.generation)
    return replace(model, wall=wall)


def _with_provenance(
    drives: FittedDrives, arm: ArmFit, given: Sequence[Recording]
) -> EnergyModel:
    """The model with its origin; serial number and firmware come from the longest recording."""
    info = arm.fitted[0].info
    factors = {
        name: {"value": value, "std": std}
        for name, (value, std) in drives.power.factors.items()
    }
    provenance = {
        **drives.model.provenance,
        "package_version": __version__,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "serial": info.serial,
        "firmware": info.controller_version,
        "simulated": any(recording.info.simulated for recording in given),
        "bags": [_bag_entry(recording) for recording in given],
        MOTION: _motion(drives.power, given),
        "power_factors": factors,
        **arm.null_models,
    }
    return replace(drives.model, provenance=provenance)


def _bag_entry(recording: Recording) -> dict[str, Any]:
    """Entry of a fitted recording under "bags" in the provenance of a model."""
    host_time = None
    if recording.host_time is not None:
        host_time = [_iso(stamp) for stamp in recording.host_time]
    entry: dict[str, Any] = {
        "path": str(recording.path),
        "sha256": recording.sha256,
        "samples": recording.samples,
        "duration": recording.duration,
        "rate": recording.rate,
        "cutoff": recording.cutoff,
        "position_delay": recording.delay,
        "controller_time": list(recording.controller_time),
        "host_time": host_time,
    }
    if recording.kept is not None:
        entry["seconds_of_motion_used"] = recording.kept.motions
        entry["seconds_of_samples_used"] = recording.kept.samples
    entry["visited"] = recording.quality.visited.as_json()
    return entry


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
    moment = datetime.fromtimestamp(1e-9 * stamp, timezone.utc)
    return moment.isoformat(timespec="seconds")


# Work on bags, here or by what runs it elsewhere.


class _BagWork:
    """Runs the same work on every bag.

    Args:
        each: runs the work, and leaves out bags that fail; None to run the work here,
            where a bag that fails is an error.
        progress: called with the finished share and the current step.

    Attributes:
        failed: bags that were left out, with reasons.
    """

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
        """Recordings that can be used, in the order of the bags.

        Args:
            bags: recordings to read.
            robot: the arm.
            opened: closes the recordings at its end.
            kept: time that is kept of a long recording [s]; None to keep the whole recording.

        Raises:
            IdentificationError: no bag can be used.
        """
        own_progress = self._progress if self._each is None else None
        work = partial(_read, robot, kept, own_progress)
        recordings = []
        for bag, found in self._results(work, [Path(bag) for bag in bags], None):
            if found is not None:
                opened.enter_context(found)
                recordings.append(found.renamed(bag))
        if bags and not recordings:
            others = f" (and {len(bags) - 1} more bags)" if len(bags) > 1 else ""
            raise IdentificationError(
                f"no bag can be used: {self.failed[0].reason}{others}"
            )
        return recordings

    def run(
        self, work: partial[Result], content: Sequence[tuple[Any, ...]]
    ) -> Iterator[tuple[Path, Result | None]]:
        """Bags with the results of work on their recordings; None where it failed.

        Args:
            work: function of a path and an element of `content`.
            content: what the work gets for each bag; its recording comes first.
        """
        paths = [recording.path for recording, *_ in content]
        return self._results(work, paths, content)

    def _results(
        self, work: partial[Result], bags: Sequence[Path], content: Sequence[Any] | None
    ) -> Iterator[tuple[Path, Result | None]]:
        """Bags with the results of work on them, with their elements of `content`, if any."""
        if self._each is None:
            for k, bag in enumerate(bags):
                yield bag, work(bag) if content is None else work(bag, content[k])
            return
        for result in self._each(work, bags, self._progress, content):
            if result.value is None:
                self.failed.append(result)
            yield result.bag, result.value


def _check_payloads(
    work: _BagWork, arm: ArmFit, given: Sequence[Recording], model: EnergyModel
) -> list[PayloadCheck]:
    """What the currents of the fitted recordings show of their payloads, with a model."""
    content = [
        (recording.motion_only(), dynamics.alone())
        for recording, dynamics in zip(given, arm.compared(), strict=False)
    ]
    checks = []
    for bag, found in work.run(partial(_check, model, arm.body.robot), content):
        checks += [replace(check, source=str(bag)) for check in found or ()]
    return checks


def _measured(
    work: _BagWork,
    model: EnergyModel,
    arm: ArmFit,
    given: Sequence[Recording],
    held_out: Sequence[Recording],
) -> tuple[tuple[Metrics, ...], tuple[Metrics, ...]]:
    """Metrics of the fitted recordings and of those held out, as far as work on them succeeds.

    A single fitted recording defines the model's session, all others are anchored on
    their own.
    """
    content = []
    pairs = zip([*given, *held_out], arm.compared(), strict=True)
    for k, (recording, dynamics) in enumerate(pairs):
        is_held_out = k >= len(given)
        anchored = is_held_out or len(given) > 1
        content.append((recording, dynamics.alone(), anchored))
    fit: list[Metrics] = []
    validation: list[Metrics] = []
    results = work.run(partial(_measure, model), content)
    for k, (bag, metrics) in enumerate(results):
        if metrics is not None:
            part = fit if k < len(given) else validation
            part.append(replace(metrics, bag=str(bag)))
    return tuple(fit), tuple(validation)


# Work on one bag; functions of modules, which workers can be sent.


def _read(
    robot: RobotDescription, kept: KeptTime | None, progress: Progress | None, path: Path
) -> Recording:
    """Read a bag, and refuse a recording that would give a wrong model."""
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
    """Check the payload of a fitted recording."""
    return check_payload(model, robot, *fitted)


def _measure(
    model: EnergyModel, path: Path, compared: tuple[Recording, RecordingDynamics, bool]
) -> Metrics:
    """Metrics of a recording; the last of `compared` is whether to anchor its session."""
    recording, dynamics, anchor = compared
    return measure(model, recording.renamed(path), dynamics, anchor=anchor)
