# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Evaluation: how well a model describes a recording, and the METRICS of the comparison.

Mean, maximum and RMS error and R2 per joint: Clochiatti et al., Robotica 2024, Tables V
and VII. The paper's mean keeps its sign (`ErrorStatistics.mean`); METRICS have the
mean of the absolute errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction, with_contradictions
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.friction_follower import FrictionFollower
from ur_energy_model.energy.matched_model import (
    MatchedModel,
    check_joints,
    doubt_about_arm,
    model_of_recording,
    serials,
)
from ur_energy_model.energy.powers import (
    FIELDS,
    MEASURED_FIELDS,
    Method,
    PowerOptions,
)
from ur_energy_model.energy.recording_energy import Rereading
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.identification.comparison import compare, compare_target_torque
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.error_statistics import (
    ErrorStatistics,
    PowerStatistics,
    Statistics,
    finite_or_none,
)
from ur_energy_model.identification.filtered_motion import SHORTEST_MOTION
from ur_energy_model.identification.joint_meter import joint_power
from ur_energy_model.identification.null_models import CurrentNull, power_null_errors
from ur_energy_model.identification.quality import Quality
from ur_energy_model.identification.recording import Recording, read_recording
from ur_energy_model.identification.visited_path import Motion, motion_of
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.bag.reader import BATCH, iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, repetition
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Progress

POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""Keys of power in METRICS, with what it is computed from."""
ANOTHER_ARM = 4.0
"""Misfit of the currents that indicates a model of another arm (or another payload): 1 to
3 for the arm's own model, cold or warm, 7 and more for another arm of the type."""


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """METRICS of one recording; the JSON keys are the names of the attributes.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint [N m], see
            `ErrorStatistics.entries`; None where columns are missing.
        current: errors of the currents per joint [A], over samples at which the joint
            moves, with "null_rms", the RMS error of the null model, if there is one; at
            standstill friction, and with it the current, takes any value up to its limit.
        current_all: errors of the currents per joint [A], over all samples.
        power: power at the supply, see `PowerStatistics.entry`: from measured currents,
            with the errors of the null model if there is one.
        power_from_motion: power at the supply, from the motion alone, as in EcBot's tests.
        motion_energy_error_percent: relative error of the energy of motion, of
            power_from_motion or else of power.
        cutoff: cut-off frequency of the filter [Hz].
        duration: duration of the recording [s].
        current_interval: {"std", "coverage"} per joint: share of the currents within
            their stated 95 % intervals, over samples at which the joint moves.
        current_interval_all: {"std", "coverage"} per joint over all samples.
        session: session that the comparison was anchored on.
        motion: relation to the recordings that the model was fitted to.
        warnings: warnings for the user, one line each.
        serials: serial numbers of the arms, see `serials`.
        controller_constants: torque constants that the recording's controller states.
        same_arm: whether model and recording are of one arm; None where unknown.
        contradictions: statements about the recording that it does not agree with; also
            in `warnings`, in words.
        joint_power: energy that each joint takes while the arm moves, modelled and
            measured by the voltages at the joints, see `JointEnergy.as_json`; with
            "reason" where it is not measured.
    """

    bag: str
    samples: int
    torque: list[Statistics] | None = None
    current: list[Statistics] | None = None
    current_all: list[Statistics] | None = None
    power: Statistics | None = None
    power_from_motion: Statistics | None = None
    motion_energy_error_percent: float | None = None
    cutoff: float
    duration: float
    current_interval: list[Statistics] | None = None
    current_interval_all: list[Statistics] | None = None
    session: dict[str, Any]
    motion: Motion = "unknown"
    warnings: tuple[str, ...] = ()
    serials: Mapping[str, str | None] = field(default_factory=dict)
    controller_constants: ControllerConstants | None = None
    same_arm: bool | None = None
    contradictions: tuple[Contradiction, ...] = ()
    joint_power: tuple[dict[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """METRICS as the command line prints them."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            **content,
            "contradictions": [each.as_json() for each in self.contradictions],
        }

    def for_model_file(self) -> dict[str, Any]:
        """METRICS as a model file has them of the recordings of its identification."""
        content = self.as_json()
        for name in ("warnings", "contradictions", "controller_constants", "same_arm"):
            del content[name]
        return content


def evaluate(
    model: EnergyModel,
    bag: str | Path,
    *,
    payload: Payload | None = None,
    anchor: bool = True,
    same_arm: bool = False,
    matched: MatchedModel | None = None,
    progress: Progress | None = None,
) -> Metrics:
    """METRICS of a recording, with the recording's own mounting and payload, else the model's.

    Args:
        model: model of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        payload: the actual payload, where another one is set in the controller; None where
            it is set right.
        anchor: take standby power and friction from the recording's own standstill and
            motion, for currents from what was before.
        same_arm: whether the recording is of the arm of the model (see `model_of_arm`);
            only used where `matched` is None.
        matched: the model for the arm of the recording; None to match it here.
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(
        model, bag, payload=payload, progress=progress
    )
    with recording:
        if matched is None:
            matched = model_of_recording(model, bag, same_arm=same_arm)
        found = measure(matched.model, recording, setups, anchor=anchor)
        warning = matched.warning
        if not matched.decided:  # friction or currents may show another arm
            warning = _doubt_about_arm(model, found)
        warnings = [] if warning is None else [warning]
        warnings += repetition(recording.quality.repeated)
        warnings += moved_by_hand(recording.quality)
        found = replace(
            found,
            warnings=tuple(warnings),
            controller_constants=matched.constants,
            same_arm=matched.same_arm,
        )
        return with_contradictions(found, matched.contradictions)


def _doubt_about_arm(model: EnergyModel, metrics: Metrics) -> str | None:
    """A warning where friction or currents of a recording do not fit the model's arm."""
    ratios = []
    for row, joint in zip(metrics.current or (), model.joints, strict=False):
        usual = joint.current_residual
        if row["rms"] is not None and usual > 0:
            ratios.append(row["rms"] / usual)
    misfit = float(np.median(ratios)) if ratios else 0.0
    misfits = []
    if misfit > ANOTHER_ARM:
        misfits.append(
            f"currents deviate {misfit:.0f} times as much as in the model's own recordings"
        )
    session: dict[str, Any] = {}
    for each in fields(Session):
        session[each.name] = np.asarray(metrics.session[each.name])
    return doubt_about_arm(model, Session(**session), misfits)


def read_for_comparison(
    model: EnergyModel,
    bag: str | Path,
    *,
    payload: Payload | None = None,
    enough: float = np.inf,
    progress: Progress | None = None,
) -> tuple[Recording, RecordingDynamics]:
    """A recording and its setups, for `compare`; the caller closes the recording.

    Args:
        model: model of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        payload: the actual one, where another is set in the controller.
        enough: time in motion after which the rest of the bag is not read [s].
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    robot = model.description()
    check_joints(model, robot)
    recording = read_recording(bag, robot, enough=enough, progress=progress)
    _, estimate = estimate_setups([recording], [recording], robot, None)
    return recording, RecordingDynamics(
        robot, recording.info, estimate, None, model.setup, payload
    )


def measure(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics, *, anchor: bool
) -> Metrics:
    """METRICS of a recording whose setups are known.

    Args:
        model: model of the arm, or generic.
        recording: recording with its filtered motions.
        setups: mounting and payloads of the recording.
        anchor: whether standby power and friction follow the recording's own session.
    """
    follower = FrictionFollower(model) if anchor else None
    errors = _errors(model, recording, setups, follower)
    actual = replace(model, setup=setups.actual_setup(recording.controller_payload))
    if follower is not None:
        actual = actual.in_session(follower.session())
    names = FIELDS
    # Without payload fields the calculator keeps the actual payload, which may differ from
    # the set one.
    if len(recording.quality.payloads) <= 1:
        names = tuple(name for name in FIELDS if not name.startswith("payload"))
    (power, from_motion), session = _compare_power(
        actual, recording, names, "current", "motion", anchor=anchor
    )
    idle = np.array([joint.activity == "idle" for joint in recording.quality.joints])
    fitted = model.provenance.get("bags") or ()
    metrics = Metrics(
        bag=str(recording.path),
        samples=recording.samples,
        cutoff=recording.cutoff,
        duration=recording.duration,
        session=session_json(session),
        motion=motion_of(recording.quality.visited, recording.sha256, fitted),
        serials=serials(model, recording.info),
        joint_power=tuple(_joint_power(actual, recording, fitted)),
    )
    if errors.torque.count.any():
        metrics = replace(metrics, torque=errors.torque.entries(idle))
    if errors.all_samples.count.any():
        metrics = replace(
            metrics,
            current=_with_null(
                errors.moving.entries(idle), model, recording, anchor=anchor
            ),
            current_all=errors.all_samples.entries(idle),
            current_interval=errors.moving.intervals(),
            current_interval_all=errors.all_samples.intervals(),
        )
    if power.samples:
        null = power_null_errors(model, recording, anchor=anchor)
        metrics = replace(metrics, power=power.entry() | null)
    if _moves_by_program(recording.quality):
        energy = power
        if from_motion.samples:
            energy = from_motion
            metrics = replace(metrics, power_from_motion=from_motion.entry())
        error = energy.motion_energy_error_percent
        metrics = replace(metrics, motion_energy_error_percent=error)
    return metrics


class _Errors(NamedTuple):
    """Errors of the modelled torques and currents of a recording, joint by joint.

    Attributes:
        torque: errors of the torque without friction, joint side [N m].
        moving: errors of the currents while the joint moves [A].
        all_samples: errors of the currents at all samples [A].
    """

    torque: ErrorStatistics
    moving: ErrorStatistics
    all_samples: ErrorStatistics


def _errors(
    model: EnergyModel,
    recording: Recording,
    setups: RecordingDynamics,
    follower: FrictionFollower | None,
) -> _Errors:
    """Compare a recording with a model; for the arguments see `compare`."""
    n = model.dof
    errors = _Errors(ErrorStatistics(n), ErrorStatistics(n), ErrorStatistics(n))
    for part in compare(model, recording, setups, follower):
        currents = part.current_measured, part.current_model
        errors.all_samples.accumulate(*currents, std=part.current_std)
        errors.moving.accumulate(*currents, part.moving, part.current_std)
        if part.torque_recorded is not None and part.torque_model is not None:
            errors.torque.accumulate(part.torque_recorded, part.torque_model)
    for _, recorded, modelled in compare_target_torque(model, recording, setups):
        errors.torque.accumulate(recorded, modelled)
    return errors


def _with_null(
    entries: list[Statistics], model: EnergyModel, recording: Recording, *, anchor: bool
) -> list[Statistics]:
    """Entries of the currents with the RMS errors of the null model, if the model has one."""
    null = CurrentNull.of_model(model)
    if null is None:
        return entries
    errors = null.rms(recording, anchor=anchor)
    return [
        {**entry, "null_rms": finite_or_none(error)}
        for entry, error in zip(entries, errors, strict=True)
    ]


def _moves_by_program(quality: Quality) -> bool:
    """Whether the arm moves, or stands still, other than by hand; freedrive hides its motion."""
    longest = max((joint.moving for joint in quality.joints), default=0.0)
    return quality.freedrive == 0.0 or longest >= SHORTEST_MOTION


def moved_by_hand(quality: Quality) -> tuple[str, ...]:
    """What freedrive does to the comparison of a recording, for the user; empty without it."""
    if quality.freedrive == 0.0:
        return ()
    share = f"{100 * quality.freedrive:.0f} % of the samples were taken in freedrive"
    if not _moves_by_program(quality):
        return (
            f"{share}, the arm was moved by hand only: there is no power from the motion to "
            "compare; record a program's motion",
        )
    return (f"{share}: power from the motion and the energy of motion leave them out",)


def _joint_power(
    model: EnergyModel, recording: Recording, fitted: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Modelled and measured energy of the joints, see `joint_power`.

    The model's cable is known from other recordings only: the cable of a model that was
    fitted to this recording would count twice.
    """
    hashes = [bag.get("sha256") for bag in fitted if isinstance(bag, Mapping)]
    cable = model.cable
    if cable is not None:
        is_fitted = recording.sha256 in hashes
        cable = None if is_fitted else cable.of_another_session()
    return joint_power(model, recording, cable)


def identify_session(
    model: EnergyModel,
    bag: str | Path,
    *,
    payload: Payload | None = None,
    enough: float = np.inf,
) -> Session:
    """The session of a recording: standby from standstill, friction from motion.

    Args:
        model: model of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        payload: the actual one, where another is set in the controller.
        enough: time in motion after which the rest of the bag is not used for friction
            [s].

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag, payload=payload, enough=enough)
    with recording:
        follower = FrictionFollower(model)
        deque(compare(model, recording, setups, follower), maxlen=0)
        model = model.in_session(follower.session())
        _, session = _compare_power(
            model, recording, MEASURED_FIELDS, "current", anchor=True
        )
        return session


def recorded_setup(model: EnergyModel, bag: str | Path) -> Setup:
    """Mounting and payload of a recording; the model's where it does not contain them.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag)
    with recording:
        return setups.actual_setup(recording.controller_payload)


def _compare_power(
    model: EnergyModel,
    recording: Recording,
    names: tuple[str, ...],
    *methods: Method,
    anchor: bool,
) -> tuple[list[PowerStatistics], Session]:
    """Errors of the modelled supply power by each method, and the session that the first shows.

    Args:
        model: model with setup and friction of the recording.
        recording: recording with bus power.
        names: fields of the recording that the methods need.
        methods: ways to compute the power.
        anchor: whether standby power is taken from the recording's own standstill.
    """
    robot = model.description()
    calculators = [
        EnergyCalculator(model, robot, PowerOptions(method=method, track_standby=anchor))
        for method in methods
    ]
    statistics = [
        PowerStatistics(each.channels, model.bus.residual) for each in calculators
    ]

    def read() -> Iterator[Telemetry]:
        """The recording in batches, with the fields that the methods need."""
        samples: Iterable[Telemetry] = recording.samples_kept
        if recording.kept is None:
            samples = iterate_bag(recording.path, names)
        for part in samples:
            columns = {name: part[name] for name in names if name in part}
            known = replace(part, columns=columns)
            for start in range(0, len(known), BATCH):
                yield known.cut(slice(start, start + BATCH))

    batches = Rereading(read)
    for method, calculator, each in zip(methods, calculators, statistics, strict=True):
        with suppress(MissingFieldError):  # the recording lacks what this method needs
            calculator.follow_session(batches)
            for batch in batches:
                table = calculator(batch)
                if table is None:
                    continue
                # A hand moves the arm in freedrive: the motors' power does not follow
                # from the motion, but from their currents as ever.
                used = usable_samples(table.samples) if method == "motion" else None
                each.accumulate(table, used)
    standby = calculators[0].standby
    if not standby.anchored:
        return statistics, model.session
    return statistics, replace(
        model.session,
        standby=standby.power,
        standby_std=standby.std,
        still_seconds=standby.still_seconds,
    )


def session_json(session: Session) -> dict[str, Any]:
    """Entry "session" of METRICS: the session that the comparison was anchored on."""
    content = {
        name: np.asarray(value).tolist() for name, value in asdict(session).items()
    }
    anchored = session.moving_seconds > 0 or session.still_seconds > 0
    return {"anchored": anchored, **content}


def r2_words(entry: Mapping[str, Any]) -> float | str:
    """R2 of an entry of METRICS for tables; "hardly moved" where there is none."""
    return "hardly moved" if entry["r2"] is None else float(entry["r2"])
