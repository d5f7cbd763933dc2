# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Evaluation: how well a model describes a recording, and the METRICS of the comparison.

Mean, maximum and RMS error and R2 per joint: Clochiatti et al., Robotica 2024, Tables V
and VII. The paper's mean keeps its sign (`ErrorStatistics.mean`); METRICS have that of
absolute errors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ur_energy_model.consistency.contradiction import Contradiction, with_contradictions
from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.friction_follower import FrictionFollower
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import (
    FIELDS,
    MEASURED_FIELDS,
    ArmState,
    Channels,
    Method,
    PowerOptions,
    PowerTable,
)
from ur_energy_model.energy.recording_energy import Rereading
from ur_energy_model.energy.telemetry_checks import (
    check_joints,
    doubt_about_arm,
    model_of_recording,
    serials,
)
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.identification.comparison import compare, compare_target_torque
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.filtered_motion import SHORTEST_MOTION
from ur_energy_model.identification.joint_meter import joint_power
from ur_energy_model.identification.null_models import CurrentNull, power_null_errors
from ur_energy_model.identification.quality import Motion, Quality, motion_of
from ur_energy_model.identification.recording import Recording, read_recording
from ur_energy_model.model.controller_constants import ControllerConstants
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.bag.reader import BATCH, iterate_bag
from ur_energy_model.telemetry.samples import Telemetry, repetition, time_blocks
from ur_energy_model.telemetry.usable_samples import usable_samples
from ur_energy_model.typing import Array, Mask, Progress

POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""Keys of power in METRICS, with what it is computed from."""
ANOTHER_ARM = 4.0
"""Misfit of the currents that indicates a model of another arm (or another payload): 1 to
3 for the arm's own model, cold or warm, 7 and more for another arm of the type."""


Statistics: TypeAlias = dict[str, float | None]
"""Statistics of one channel by name; None where they cannot be computed."""


@dataclass(frozen=True)
class Metrics:
    """METRICS of one recording; the JSON keys are the names of the attributes.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint [N m], see
            `ErrorStatistics.entries`; None where columns are missing.
        current: the same in A, over samples at which the joint moves, with "null_rms",
            the RMS error of the null model, if there is one; at standstill friction, and
            with it the current, takes any value up to its limit.
        current_all: the same over all samples.
        power: at the supply, see `PowerStatistics.entry`: from measured currents, with
            the errors of the null model if there is one.
        power_from_motion: the same from the motion alone, as in EcBot's tests.
        motion_energy_error_percent: relative error of the energy of motion, of
            power_from_motion or else of power.
        cutoff: of the filter [Hz].
        duration: of the recording [s].
        current_interval: {"std", "coverage"} per joint: share of the currents within
            their stated 95 % intervals, over samples at which the joint moves.
        current_interval_all: the same over all samples.
        session: that the comparison was anchored on.
        motion: relation to the recordings that the model was fitted to.
        warnings: for the user, one line each.
        serials: of the arms, see `serials`.
        controller_constants: torque constants that the recording's controller states, and
            whether they are the model's.
        contradictions: statements about the recording that it does not agree with; also
            in `warnings`, in words.
        joint_power: energy that each joint takes while the arm moves, modelled and
            measured by the voltages at the joints, see `JointEnergy.as_json`; with
            "reason" where it is not measured.
    """

    bag: str
    samples: int
    torque: list[Statistics] | None
    current: list[Statistics] | None
    current_all: list[Statistics] | None
    power: Statistics | None
    power_from_motion: Statistics | None
    motion_energy_error_percent: float | None
    cutoff: float
    duration: float
    current_interval: list[Statistics] | None
    current_interval_all: list[Statistics] | None
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
        """METRICS as a model keeps them of the recordings it was identified with."""
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
    progress: Progress | None = None,
) -> Metrics:
    """METRICS of a recording, with the recording's own mounting and payload, else the model's.

    Args:
        model: of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        payload: the actual one, where another is set in the controller.
        anchor: take standby power and friction from the recording's own standstill and
            motion, for currents from what was before.
        same_arm: see `model_of_arm`.
        progress: called with the finished share and the current step.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(
        model, bag, payload=payload, progress=progress
    )
    with closing(recording):
        matched = model_of_recording(model, bag, same_arm=same_arm)
        found = measure(matched.model, recording, setups, anchor=anchor)
        warning = matched.warning
        if not matched.decided:  # friction or currents may show another arm
            rms = [
                np.nan if row["rms"] is None else row["rms"]
                for row in found.current or ()
            ]
            usual = [joint.current_residual or np.nan for joint in model.joints]
            ratios = np.array(rms) / np.array(usual[: len(rms)])
            misfit = float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else 0.0
            words = f"currents deviate {misfit:.0f} times as much as in the model's own recordings"
            known: dict[str, Any] = {
                each.name: np.asarray(found.session[each.name])
                for each in fields(Session)
            }
            misfits = [words] if misfit > ANOTHER_ARM else []
            warning = doubt_about_arm(model, Session(**known), misfits)
        warnings = () if warning is None else (warning,)
        found = replace(
            found,
            warnings=(
                *warnings,
                *repetition(recording.quality.repeated),
                *moved_by_hand(recording.quality),
            ),
            controller_constants=matched.constants,
            same_arm=matched.same_arm,
        )
        return with_contradictions(found, matched.contradictions)


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
        model: of the arm, or generic.
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
        model: of the arm, or generic.
        recording: with its filtered motions.
        setups: mounting and payloads of the recording.
        anchor: whether standby power and friction follow the recording's own session.
    """
    n = model.dof
    follower = FrictionFollower(model) if anchor else None
    everything = ErrorStatistics(n)
    moving = ErrorStatistics(n)
    torque = ErrorStatistics(n)
    for part in compare(model, recording, setups, follower):
        currents = part.current_measured, part.current_model
        everything.accumulate(*currents, std=part.current_std)
        moving.accumulate(*currents, part.moving, part.current_std)
        if part.torque_recorded is not None and part.torque_model is not None:
            torque.accumulate(part.torque_recorded, part.torque_model)
    for _, recorded, modelled in compare_target_torque(model, recording, setups):
        torque.accumulate(recorded, modelled)
    actual = replace(model, setup=setups.actual_setup(recording.controller_payload))
    if follower is not None:
        actual = actual.in_session(follower.session())
    used = FIELDS
    # the actual payload may differ from the set one
    if len(recording.quality.payloads) <= 1:
        used = tuple(name for name in FIELDS if not name.startswith("payload"))
    (power, from_motion), session = _compare_power(
        actual, recording, used, "current", "motion", anchor=anchor
    )
    energy = from_motion if from_motion.samples else power
    program_moves = _moves_by_program(recording.quality)
    measured = (moving, everything) if everything.count.any() else ()
    idle = np.array([joint.activity == "idle" for joint in recording.quality.joints])
    current, current_all = [each.entries(idle) for each in measured] or (None, None)
    null = CurrentNull.of_model(model) if current else None
    if current and null is not None:
        rms = null.rms(recording, anchor=anchor)
        current = [
            {**row, "null_rms": finite_or_none(v)}
            for row, v in zip(current, rms, strict=True)
        ]
    power_null = power_null_errors(model, recording, anchor=anchor)
    intervals, intervals_all = [each.intervals() for each in measured] or (None, None)
    fitted = model.provenance.get("bags") or ()
    return Metrics(
        bag=str(recording.path),
        samples=recording.samples,
        torque=torque.entries(idle) if torque.count.any() else None,
        current=current,
        current_all=current_all,
        power=power.entry() | power_null if power.samples else None,
        power_from_motion=from_motion.entry()
        if from_motion.samples and program_moves
        else None,
        motion_energy_error_percent=energy.motion_energy_error_percent
        if program_moves
        else None,
        cutoff=recording.cutoff,
        duration=recording.duration,
        current_interval=intervals,
        current_interval_all=intervals_all,
        session=session_json(session),
        motion=motion_of(recording.quality.visited, recording.sha256, fitted),
        serials=serials(model, recording.info),
        joint_power=tuple(_joint_power(actual, recording, fitted)),
    )


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
    """Modelled and measured energy of the joints; the arm's cable is known from other recordings.

    That of a model which was fitted to this recording is not: it would count twice.
    """
    hashes = [bag.get("sha256") for bag in fitted if isinstance(bag, Mapping)]
    known = model.cable is not None and recording.sha256 not in hashes
    cable = (
        model.cable.of_another_session() if known and model.cable is not None else None
    )
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
        model: of the arm, or generic.
        bag: folder of a bag, or an .mcap file.
        payload: the actual one, where another is set in the controller.
        enough: time in motion after which the rest of the bag is not used for friction
            [s].

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag, payload=payload, enough=enough)
    with closing(recording):
        follower = FrictionFollower(model)
        deque(compare(model, recording, setups, follower), maxlen=0)
        model = model.in_session(follower.session())
        return _compare_power(model, recording, MEASURED_FIELDS, "current", anchor=True)[
            1
        ]


def recorded_setup(model: EnergyModel, bag: str | Path) -> Setup:
    """Mounting and payload of a recording; the model's where it does not contain them.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag)
    with closing(recording):
        return setups.actual_setup(recording.controller_payload)


def _compare_power(
    model: EnergyModel,
    recording: Recording,
    names: tuple[str, ...],
    *methods: Method,
    anchor: bool,
) -> tuple[list[PowerStatistics], Session]:
    """Errors of the modelled supply power by each method, and the session that the first shows.

    The model is in the setup and with the friction of the recording, whose fields of
    these names are read once; `anchor` takes standby power from its own standstill.
    """
    robot = model.description()
    calculators = [
        EnergyCalculator(model, robot, PowerOptions(method=method, track_standby=anchor))
        for method in methods
    ]
    statistics = [
        PowerStatistics(each.channels, model.bus.residual) for each in calculators
    ]
    whole = recording.kept is None

    def read() -> Iterator[Telemetry]:
        for part in (
            iterate_bag(recording.path, names) if whole else recording.samples_kept
        ):
            known = replace(
                part, columns={name: part[name] for name in names if name in part}
            )
            for start in range(0, len(known), BATCH):
                yield known.cut(slice(start, start + BATCH))

    batches = Rereading(read)
    for method, calculator, each in zip(methods, calculators, statistics, strict=True):
        with suppress(MissingFieldError):  # the recording lacks what this method needs
            calculator.follow_session(batches)
            for table in filter(None, map(calculator, batches)):
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


# Errors of n channels, and of the power at the supply, accumulated batch by batch.

SHORTEST_STANDSTILL = 0.5  # least standstill that determines the power at standstill [s]
_BUS_RESIDUAL = 1.7
"""Of a model without bus power [W]: 1.6 to 1.8 W of identified models on real arms."""
_BLOCK = 1.0
"""Errors of power within this time count as one when the interval of their RMS is
computed [s]."""
# least mean power above standstill that exceeds a drift of standby [W]
LEAST_MOTION_POWER = 1.0


class ErrorStatistics:
    """Errors (model minus measurement) of n channels, and how many their stated intervals hold."""

    def __init__(self, channels: int) -> None:
        self.count, self._absolute, self._signed, self._squared = np.zeros((4, channels))
        self._largest, self._mean, self._scatter = np.zeros((3, channels))
        self._within, self._variance = np.zeros((2, channels))
        self._low = np.full(channels, np.inf)
        self._high = np.full(channels, -np.inf)

    def accumulate(
        self,
        measured: Array,
        model: Array,
        mask: Mask | None = None,
        std: Array | None = None,
    ) -> None:
        """Accumulate samples [samples, n], only those where the mask [samples, n] is True.

        Args:
            measured: values [samples, n], in the unit of the quantity.
            model: what a model gives for them [samples, n].
            mask: the samples that count [samples, n].
            std: stated standard deviations of the errors [samples, n], if any.
        """
        if not len(measured):
            return

        def used(values: Array, otherwise: float = 0.0) -> Array:
            return values if mask is None else np.where(mask, values, otherwise)

        error = used(model - measured)
        size = np.abs(error)
        self._signed += error.sum(axis=0)
        self._absolute += size.sum(axis=0)
        self._squared += np.square(error).sum(axis=0)
        self._largest = np.maximum(self._largest, size.max(axis=0))
        if std is not None:
            self._within += used((size <= CONFIDENCE * std).astype(float)).sum(axis=0)
            self._variance += used(np.square(std)).sum(axis=0)
        # Scatter about the mean, merged pairwise (Chan et al. 1983): no cancellation.
        whole = np.full(measured.shape[1], float(len(measured)))
        count = whole if mask is None else mask.sum(axis=0).astype(float)
        total = self.count + count
        mean = used(measured).sum(axis=0) / np.maximum(count, 1.0)
        scatter = used(np.square(measured - mean)).sum(axis=0)
        shift = mean - self._mean
        self._scatter += scatter + shift**2 * self.count * count / np.maximum(total, 1.0)
        self._mean += shift * count / np.maximum(total, 1.0)
        self.count = total
        self._low = np.minimum(self._low, used(measured, np.inf).min(axis=0))
        self._high = np.maximum(self._high, used(measured, -np.inf).max(axis=0))

    @property
    def rms(self) -> Array:
        """RMS error per channel [n]; NaN without samples."""
        return np.asarray(np.sqrt(self._squared / _positive(self.count)))

    @property
    def mean(self) -> Array:
        """Mean error per channel [n], its sign kept; NaN without samples."""
        return np.asarray(self._signed / _positive(self.count))

    @property
    def largest(self) -> Array:
        """Largest absolute error per channel [n]; NaN without samples."""
        return np.where(self.count > 0, self._largest, np.nan)

    @property
    def r2(self) -> Array:
        """Coefficient of determination per channel [n]; NaN where the measurement is constant."""
        return np.asarray(1.0 - self._squared / _positive(self._scatter))

    @property
    def rms_percent(self) -> Array:
        """RMS error over the range of the measurement (EcBot, eq. 23 and 26) per channel [n], %.

        NaN where the measurement is constant.
        """
        span = np.where(self.count > 0, self._high - self._low, 0.0)
        return np.asarray(100 * self.rms / _positive(span))

    def entries(self, idle: Mask) -> list[Statistics]:
        """{"mean", "max", "rms", "r2"} per channel; mean and max of the absolute errors.

        Joints that hardly moved [n] have no R2: there is no variation to explain.
        """
        mean = self._absolute / _positive(self.count)
        r2 = np.where(idle, np.nan, self.r2)
        return _by_channel(mean=mean, max=self.largest, rms=self.rms, r2=r2)

    def intervals(self) -> list[Statistics]:
        """{"std", "coverage"} per channel: RMS of the stated deviations, share within 95 %."""
        count = _positive(self.count)
        return _by_channel(
            std=np.sqrt(self._variance / count), coverage=self._within / count
        )


def r2_words(entry: Mapping[str, Any]) -> float | str:
    """R2 of an entry of METRICS for tables."""
    return "hardly moved" if entry["r2"] is None else float(entry["r2"])


def _by_channel(**values: Array) -> list[Statistics]:
    """Values [n] by name as one entry per channel."""
    rows = zip(*values.values(), strict=True)
    return [dict(zip(values, map(finite_or_none, row), strict=True)) for row in rows]


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)


def finite_or_none(value: float) -> float | None:
    """The value for JSON; None for NaN and infinity."""
    return float(value) if np.isfinite(value) else None


class PowerStatistics:
    """Errors of the power and energy at the supply while brakes are released.

    The energy of motion is evaluated separately: energy above the power at standstill,
    over the samples at which the arm moves. Most of an arm's energy is standby, so an
    error of one percent of the total shows little of the motors.

    Args:
        noise: standard deviation of the measured power about an exact model's [W].
    """

    def __init__(self, channels: Channels, noise: float) -> None:
        self._channels = channels
        self._noise = noise if np.isfinite(noise) else _BUS_RESIDUAL
        self._errors = ErrorStatistics(1)
        self._blocks: list[float] = []
        """Mean squared error of each block of time [W^2]."""
        self._seconds, self._measured, self._model = (
            np.zeros(len(ArmState)) for _ in range(3)
        )

    def accumulate(self, table: PowerTable, used: Mask | None = None) -> None:
        """Accumulate the calculator's powers; tables without bus power are ignored.

        Args:
            table: powers of consecutive samples.
            used: samples [samples] that count, None for all.
        """
        use = table.states >= ArmState.STANDSTILL
        if used is not None:
            use &= used
        if not table.bus_measured or not use.any():
            return
        arm = self._channels.arm
        measured = table.power[use, arm["bus"]]
        model = table.power[use, arm["model"]]
        steps = table.steps.bridged[use]
        states = table.states[use]
        known = self._channels.deviations_of_model(table.power[use], over=steps)
        std = np.hypot(known, self._noise)
        self._errors.accumulate(measured[:, None], model[:, None], std=std[:, None])
        squares = np.square(model - measured)
        blocks = time_blocks(table.samples.time[use], _BLOCK)
        self._blocks += [float(squares[block].mean()) for block in blocks]
        count = len(ArmState)
        self._seconds += np.bincount(states, steps, count)
        self._measured += np.bincount(states, steps * measured, count)
        self._model += np.bincount(states, steps * model, count)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return int(self._errors.count[0])

    @property
    def motion_energy_error_percent(self) -> float | None:
        """Relative error of the energy of motion [%].

        None where the recording has no standstill or hardly any power of motion.
        """
        still = ArmState.STANDSTILL
        moving = ArmState.MOVING
        seconds = self._seconds
        if seconds[still] < SHORTEST_STANDSTILL or seconds[moving] <= 0.0:
            return None
        level = self._measured[still] / seconds[still]
        modelled = self._model[still] / seconds[still]
        above = self._measured[moving] - level * seconds[moving]
        expected = self._model[moving] - modelled * seconds[moving]
        if above <= LEAST_MOTION_POWER * seconds[moving]:
            return None
        return finite_or_none(100 * float(expected - above) / float(above))

    def entry(self) -> Statistics:
        """{"rmse", "rmse_low", "rmse_high", "rmse_percent", "r2", "energy_error_percent", ...}.

        RMSE, its 95 % interval from the scatter over blocks of time, RMSE over the range
        of the measurement (EcBot, eq. 22-23), and {"std", "coverage"} of the stated
        intervals of the power, see `ErrorStatistics.intervals`.
        """
        rmse = float(self._errors.rms[0])
        low = float("nan")
        high = float("nan")
        if len(self._blocks) > 1:
            half = (
                CONFIDENCE
                * float(np.std(self._blocks, ddof=1))
                / np.sqrt(len(self._blocks))
            )
            low = np.sqrt(max(rmse**2 - half, 0.0))
            high = np.sqrt(rmse**2 + half)
        measured = self._measured.sum()
        model = self._model.sum()
        share = 100 * (model - measured) / measured if measured else float("nan")
        figures = {
            "rmse": rmse,
            "rmse_low": low,
            "rmse_high": high,
            "rmse_percent": self._errors.rms_percent[0],
            "r2": self._errors.r2[0],
            "energy_error_percent": share,
        }
        known = {name: finite_or_none(value) for name, value in figures.items()}
        return {**known, **self._errors.intervals()[0]}
