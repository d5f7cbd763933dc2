"""Evaluation: how well a model describes a recording, and the METRICS of the comparison."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.powers import FIELDS, MEASURED_FIELDS, Method, PowerOptions
from ur_energy_model.energy.session import FrictionAnchor
from ur_energy_model.energy.telemetry_checks import (
    check_joints,
    doubt_about_arm,
    model_of_arm,
    serials,
)
from ur_energy_model.errors import MissingFieldError
from ur_energy_model.identification.comparison import compare, compare_target_torque
from ur_energy_model.identification.dynamics import RecordingDynamics, estimate_setups
from ur_energy_model.identification.error_statistics import (
    ErrorStatistics,
    PowerStatistics,
    Statistics,
)
from ur_energy_model.identification.quality import Motion, motion_of
from ur_energy_model.identification.recording import Recording, read_recording
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.sessions import Session
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.bag.reader import BATCH, iterate_bag
from ur_energy_model.telemetry.samples import repetition
from ur_energy_model.typing import Progress

POWERS = {"power": "from measured currents", "power_from_motion": "from the motion alone"}
"""Keys of power in METRICS, with what it is computed from."""
ANOTHER_ARM = 4.0
"""Misfit of the currents that indicates a model of another arm (or another payload): 1 to 3 for the
arm's own model, cold or warm, 7 and more for another arm of the type."""


@dataclass(frozen=True)
class Metrics:
    """METRICS of one recording; the JSON keys are the names of the attributes.

    Attributes:
        bag: path as given.
        samples: number of samples read.
        torque: {"mean", "max", "rms", "r2"} per joint [N m]; None where columns are missing.
        current: the same in A, over samples at which the joint moves: at standstill friction, and
            with it the current, takes any value up to its limit.
        current_all: the same over all samples.
        power: at the supply from measured currents, see `PowerStatistics.entry`; or None.
        power_from_motion: the same from the motion alone, without measured currents, as in EcBot's
            tests.
        motion_energy_error_percent: relative error of the energy of motion, of power_from_motion or
            else of power.
        cutoff: of the filter [Hz].
        duration: of the recording [s].
        current_interval: {"std", "coverage"} per joint: share of the currents within their stated
            95 % intervals, over samples at which the joint moves.
        current_interval_all: the same over all samples.
        session: see `session_json`.
        motion: relation to the recordings that the model was fitted to.
        warnings: for the user, one line each.
        serials: of the arms of model and recording, see `serials`.
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

    def as_json(self) -> dict[str, Any]:
        """METRICS as the command line prints them."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def for_model_file(self) -> dict[str, Any]:
        """METRICS as a model keeps them of the recordings it was identified with."""
        content = self.as_json()
        del content["warnings"]
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
    """METRICS of a recording, with the recording's own mounting and payload.

    The model's mounting and payload are used where the recording does not contain them.

    Args:
        model: of the arm.
        bag: recording.
        payload: actual payload, where it differs from the one set in the controller.
        anchor: take standby power and friction scales from the recording's own standstill and
            first seconds of motion.
        same_arm: see `model_of_arm`.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag, payload=payload, progress=progress)
    with closing(recording):
        matched, warning = model_of_arm(model, recording.info, same_arm=same_arm)
        found = measure(matched, recording, setups, anchor=anchor)
        if warning is None and not same_arm:  # friction or currents may show another arm
            rms = [np.nan if row["rms"] is None else row["rms"] for row in found.current or ()]
            usual = [joint.current_residual or np.nan for joint in model.joints]
            ratios = np.array(rms) / np.array(usual[: len(rms)])
            misfit = float(np.nanmedian(ratios)) if np.isfinite(ratios).any() else 0.0
            words = f"currents deviate {misfit:.0f} times as much as in the model's own recordings"
            known: dict[str, Any] = {
                each.name: np.asarray(found.session[each.name]) for each in fields(Session)
            }
            misfits = [words] if misfit > ANOTHER_ARM else []
            warning = doubt_about_arm(model, recording.info, Session(**known), misfits)
        warnings = () if warning is None else (warning,)
        return replace(found, warnings=(*warnings, *repetition(recording.quality.repeated)))


def read_for_comparison(
    model: EnergyModel,
    bag: str | Path,
    *,
    payload: Payload | None = None,
    progress: Progress | None = None,
) -> tuple[Recording, RecordingDynamics]:
    """A recording and its setups, for `compare`; the caller closes the recording.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    robot = model.description()
    check_joints(model, robot)
    recording = read_recording(bag, robot, progress=progress)
    _, estimate = estimate_setups([recording], [recording], robot, None)
    return recording, RecordingDynamics(robot, recording.info, estimate, None, model.setup, payload)


def measure(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics, *, anchor: bool
) -> Metrics:
    """METRICS of a recording whose setups are known."""
    n = model.dof
    if anchor:
        model = model.in_session(anchored_friction(model, recording, setups))
    everything, moving, torque = ErrorStatistics(n), ErrorStatistics(n), ErrorStatistics(n)
    for part in compare(model, recording, setups):
        currents = part.current_measured, part.current_model
        everything.accumulate(*currents, std=part.current_std)
        moving.accumulate(*currents, part.moving, part.current_std)
        if part.torque_recorded is not None and part.torque_model is not None:
            torque.accumulate(part.torque_recorded, part.torque_model)
    for _, recorded, modelled in compare_target_torque(model, recording, setups):
        torque.accumulate(recorded, modelled)
    actual = replace(model, setup=setups.actual_setup(recording.controller_payload))
    used = FIELDS
    if len(recording.quality.payloads) <= 1:  # the actual payload may differ from the set one
        used = tuple(name for name in FIELDS if not name.startswith("payload"))
    if anchor:  # standstill may come late in the recording
        _, session = _compare_power(actual, recording, MEASURED_FIELDS, "current", anchor=True)
        actual = actual.in_session(session)
    (power, from_motion), session = _compare_power(
        actual, recording, used, "current", "motion", anchor=anchor
    )
    energy = from_motion if from_motion.samples else power
    known = bool(everything.count.any())
    return Metrics(
        bag=str(recording.path),
        samples=recording.samples,
        torque=torque.entries() if torque.count.any() else None,
        current=moving.entries() if known else None,
        current_all=everything.entries() if known else None,
        power=power.entry() if power.samples else None,
        power_from_motion=from_motion.entry() if from_motion.samples else None,
        motion_energy_error_percent=energy.motion_energy_error_percent,
        cutoff=recording.cutoff,
        duration=recording.duration,
        current_interval=moving.intervals() if known else None,
        current_interval_all=everything.intervals() if known else None,
        session=session_json(session),
        motion=motion_of(
            recording.quality.visited, recording.sha256, model.provenance.get("bags") or ()
        ),
        serials=serials(model, recording.info),
    )


def identify_session(model: EnergyModel, bag: str | Path) -> Session:
    """The session of a recording: standby from standstill, friction from its first motion.

    Raises:
        UrEnergyError: input that cannot be used, with place and remedy.
    """
    recording, setups = read_for_comparison(model, bag)
    with closing(recording):
        model = model.in_session(anchored_friction(model, recording, setups))
        return _compare_power(model, recording, MEASURED_FIELDS, "current", anchor=True)[1]


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

    The model is in the setup and with the friction of the recording, whose fields of these names
    are read once; `anchor` takes standby power from its own standstill.
    """
    robot = model.description()
    calculators = [
        EnergyCalculator(model, robot, PowerOptions(method=method, track_standby=anchor))
        for method in methods
    ]
    statistics = [PowerStatistics(each.channels, model.bus.residual) for each in calculators]
    lacking: set[int] = set()
    whole = recording.kept is None
    for part in iterate_bag(recording.path, names) if whole else recording.samples_kept:
        known = replace(part, columns={name: part[name] for name in names if name in part})
        for start in range(0, len(known), BATCH):
            batch = known.cut(slice(start, start + BATCH))
            for k, calculator in enumerate(calculators):
                if k not in lacking:
                    try:
                        table = calculator(batch)
                    except MissingFieldError:  # the recording lacks what this method needs
                        lacking.add(k)
                        statistics[k] = PowerStatistics(calculator.channels)
                    else:
                        if table is not None:
                            statistics[k].accumulate(table)
    standby = calculators[0].standby
    if not standby.anchored:
        return statistics, model.session
    return statistics, replace(
        model.session,
        standby=standby.power,
        standby_std=standby.std,
        still_seconds=standby.still_seconds,
    )


def anchored_friction(
    model: EnergyModel, recording: Recording, setups: RecordingDynamics
) -> Session:
    """Friction scales of a recording, from the first seconds of its motion; standby the model's."""
    anchor = FrictionAnchor(model)
    for motion in recording.motions:
        for part, dynamics in setups.parts(motion):
            state, warmth = (part.q, part.qd, part.qdd, part.current), part.known_temperature
            anchor.observe(dynamics, part.time, *state, warmth)
            if anchor.done:
                return anchor.session()
    return anchor.session()


def session_json(session: Session) -> dict[str, Any]:
    """Entry "session" of METRICS: the session that the comparison was anchored on."""
    content = {name: np.asarray(value).tolist() for name, value in asdict(session).items()}
    anchored = session.moving_seconds > 0 or session.still_seconds > 0
    return {"anchored": anchored, **content}
