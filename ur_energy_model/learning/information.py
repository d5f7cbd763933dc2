"""What has been learned of an arm so far: sums in constant memory, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.energy.telemetry_checks import PAYLOAD
from ur_energy_model.errors import IdentificationError
from ur_energy_model.identification.assembly import BodyResults, fit_drives
from ur_energy_model.identification.dynamics import (
    DynamicsEstimate,
    RecordingDynamics,
    angle_between,
    estimate_dynamics,
    inertia_from_torque,
)
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    MotionStream,
    ParallelFilter,
    choose_cutoff,
    sample_period,
    usable_samples,
)
from ur_energy_model.identification.friction_data import WARMTH
from ur_energy_model.identification.friction_fit import (
    SHORTEST_MOTION,
    CurrentData,
    CurrentRegression,
    PreslidingFit,
    with_travels,
)
from ur_energy_model.identification.power_fit import (
    CapacitorFit,
    PowerData,
    PowerFit,
    with_capacitor,
)
from ur_energy_model.identification.power_structures import power_prior, power_rows
from ur_energy_model.identification.torque_constants import expected_inertia
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import document, model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array

_MOST_SESSIONS = 6
_MOST_BLOCKS = 24
"""Blocks of time kept of a session."""


@dataclass(frozen=True)
class ArmMotion:
    """A filtered motion with one payload, links and payload, and the filter to compare currents."""

    motion: FilteredMotion
    dynamics: ArmDynamics
    narrow: ParallelFilter


class ArmInformation:
    """Sums over all sessions of one arm, and what they determine; `prior` is the first model."""

    def __init__(self, robot: RobotDescription, prior: EnergyModel) -> None:
        self.robot, self.prior = robot, prior
        self._powers: list[PowerFit] = []
        self._known_power = power_prior(robot, prior)
        self._setup = SetupEstimate(robot, prior.setup)
        self._cutoff: float | None = None
        self._inertia = expected_inertia(robot)
        self._currents = CurrentRegression(
            robot, "auto", warm=True, inertia=self._inertia, most_blocks=_MOST_BLOCKS, known=prior
        )
        self._use(prior, fitted=False)
        self.start_session()

    def _use(self, model: EnergyModel, *, fitted: bool) -> None:
        """Accumulate errors of presliding travels and of the bus capacitor with a model.

        Neither is linear in its parameters: the model after the last one takes the best candidates.
        """
        self._model, self._fitted = model, fitted
        self._presliding, self._capacitor = PreslidingFit(model), CapacitorFit(model)

    def start_session(self) -> None:
        """Start another session, with its own standby power and friction level."""
        self._powers.append(PowerFit(self.robot, self._known_power))
        self._currents.start_session()
        self._setup.start_session()
        if len(self._powers) > _MOST_SESSIONS:
            del self._powers[0]
            del self._currents.data.sessions[0]

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "powers": [plain(power.data, arrays=True) for power in self._powers],
            "setup": self._setup.saved(),
            "cutoff": self._cutoff,
            "currents": plain(self._currents.data, arrays=True),
            "rest": {
                "model": document(self._model),
                "learned": self._fitted,
                "presliding": self._presliding.saved(),
                "capacitor": self._capacitor.errors,
            },
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved sums."""
        self._powers = [
            PowerFit(self.robot, self._known_power, built(PowerData, power))
            for power in saved["powers"]
        ]
        self._setup.restore(saved["setup"])
        self._cutoff = saved["cutoff"]
        self._currents.data = built(CurrentData, saved["currents"])
        rest = saved["rest"]
        self._use(model_from_document(rest["model"], "state"), fitted=rest["learned"])
        self._presliding.restore(rest["presliding"])
        self._capacitor.errors = rest["capacitor"]

    def add(self, window: Telemetry) -> list[ArmMotion]:
        """Add a window of usable samples; returns its motions."""
        self._powers[-1].accumulate(window)
        if self._setup.add(window):
            self._currents.data.restart_session()
        motions = self._motions(window)
        for part in motions:
            motion = part.motion
            link = part.dynamics.inverse_dynamics(motion.q, motion.qd, motion.qdd)
            load = link + self._inertia.value * motion.qdd
            self._currents.accumulate(motion, load, part.narrow)
            if self._fitted:
                self._presliding.start_recording()
                self._presliding.accumulate(motion, link, part.narrow)
        resting = self._fitted and self._powers[-1].supply_rested
        rows = power_rows(window) if resting else None
        if rows is not None:
            use = np.isin(rows.mode, BRAKES_RELEASED)
            supply = (each[use] for each in (rows.time, rows.qd, rows.current, rows.power))
            self._capacitor.start_recording()
            self._capacitor.accumulate(*supply)
        return motions

    def fit(self) -> EnergyModel | None:
        """The model that all data give; None if no joint has moved yet.

        Currents of the session that were accumulated with another mounting are left out.
        IdentificationError: currents that contradict the torques; ModelFileError: values that no
        arm can have.
        """
        data = self._currents.data
        if self._setup.update():
            data.restart_session()
        if data.moving_time.max(initial=0.0) < SHORTEST_MOTION:
            return None
        estimate = self._setup.estimate
        inertia = inertia_from_torque(self.robot, estimate)
        low, high = data.temperature.T
        joints = self._currents.rebased(inertia, warm=bool((high - low > WARMTH).any())).fit()
        stated = self._setup.dynamics(RecordingInfo()).stated(np.full(4, np.nan))
        body = BodyResults(self.robot, estimate, stated, inertia)
        found = fit_drives(body, joints, self._powers, "physical").model
        travels, errors = self._presliding.travels(), self._capacitor.errors
        if not self._fitted:
            travels = np.array([joint.friction.presliding for joint in self._model.joints])
            errors = np.zeros_like(errors)
        found = with_travels(with_capacitor(found, errors), travels)
        # As it will be read from a file, so that a restart changes nothing.
        model = model_from_document(document(found), "learned model")
        self._use(model, fitted=True)
        return model

    def _motions(self, window: Telemetry) -> list[ArmMotion]:
        if any(name not in window for name in ("actual_q", "actual_qd", "actual_current")):
            return []
        if self._cutoff is None:
            if np.abs(np.nan_to_num(window["actual_qd"])).max() < 0.05:
                return []
            self._cutoff = choose_cutoff(window)
        stream = MotionStream(self.robot.dof, self._cutoff, sample_period(window.time))
        narrow, dynamics = ParallelFilter(self._cutoff), self._setup.dynamics(window.info)
        return [
            ArmMotion(part, arm, narrow)
            for motion in (*stream.process(window), *stream.finish())
            for part, arm in dynamics.parts(motion)
        ]


_MOST_SETUP_SESSIONS = 3
"""Sessions whose samples are kept; the inertias are common to them."""
_GROWTH = 1.3
"""Factor by which the samples must grow before an undecided setup is estimated again."""
_SAME = np.radians(0.5)
"""Mountings that differ by less are the same [rad]."""


class SetupEstimate:
    """Mounting, payloads and inertias from target_moment, estimated anew as samples arrive.

    A mounting may change between sessions, the inertias of the arm do not. `fallback` is the setup
    where target_moment shows none.
    """

    def __init__(self, robot: RobotDescription, fallback: Setup) -> None:
        self.robot, self.fallback = robot, fallback
        self.estimate: DynamicsEstimate | None = None
        """Setups and inertias; None without target_moment."""
        self._rows = [TorqueRows()]
        self._first = 0
        """Number of the first session whose samples are kept."""
        self._used = 0
        """Samples of this session in the last estimate."""

    def start_session(self) -> None:
        """Start another session."""
        if not self._rows[-1].samples:
            return
        for rows in self._rows:  # fewer of sessions that are over
            if "target_q" in rows.columns:
                step = max(1, -(-rows.samples // _KEPT))
                rows.columns = {name: part[::step] for name, part in rows.columns.items()}
        self._rows, self._used = [*self._rows, TorqueRows()], 0
        if len(self._rows) > _MOST_SETUP_SESSIONS:
            self._first += 1
            del self._rows[0]

    def add(self, window: Telemetry) -> bool:
        """Add usable samples; True if the mounting turns out to be another one."""
        self._rows[-1].append(window)
        decided = self.estimate is not None and any(
            entry.source == self._source() and entry.setup_source == "estimated"
            for entry in self.estimate.recordings
        )
        enough = self._rows[-1].samples >= max(1, _GROWTH * self._used)
        return enough and not decided and self.update()

    def update(self) -> bool:
        """Estimate from all samples; True if the mounting turns out to be another one."""
        before = self._gravity()
        parts = [
            rows.telemetry(self._source(k)) for k, rows in enumerate(self._rows) if rows.samples
        ]
        if not parts:
            return False
        self._used = self._rows[-1].samples
        try:
            found = estimate_dynamics(parts, self.robot)
        except IdentificationError:
            return False
        own = [entry for entry in found.recordings if entry.source == self._source()]
        if own:
            longest = max(own, key=lambda entry: entry.samples)
            found = replace(found, setup=longest.setup, setup_source=longest.setup_source)
        self.estimate = found
        return bool(angle_between(before, self._gravity()) > _SAME)

    def _gravity(self) -> Array:
        return self.dynamics(RecordingInfo()).actual_setup(np.full(4, np.nan)).gravity

    def dynamics(self, info: RecordingInfo) -> RecordingDynamics:
        """Dynamics of the arm in this session, for samples with this information."""
        named, fallback = replace(info, source=self._source()), self.fallback
        if self.estimate is not None:
            named, fallback = replace(named, gravity=None), self.estimate.setup
        return RecordingDynamics(self.robot, named, self.estimate, None, fallback)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {"rows": self._rows, "first": self._first}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved samples."""
        self._rows = [
            TorqueRows(dict(rows["columns"]), rows["stride"], list(map(tuple, rows["payloads"])))
            for rows in saved["rows"]
        ]
        self._first = saved["first"]
        self.update()

    def _source(self, index: int = -1) -> str:
        """Name of a session whose samples are kept."""
        return f"session {self._first + index % len(self._rows)}"


_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_TARGET_RATE, _ACTUAL_RATE = 25.0, 100.0
"""Samples per second kept of recorded targets, which have no noise, and of measured motion [Hz]."""
_SPARSE = 1.5
"""Samples are thinned where there are more than this times as many."""
_MOST = 3000
"""Rows kept."""
_KEPT = 800
"""Rows of recorded targets kept of a session that is over."""
_MOST_PAYLOADS = 3


@dataclass
class TorqueRows:
    """target_moment with its motion, thinned to what determines setup and inertias, bounded.

    Recorded targets are noise-free: a few thousand of them spread over all the time suffice, every
    `stride`-th. Measured motion must be continuous to be filtered: the first samples are kept.
    `columns` are by field name, "time" among them; `payloads` (mass and centre) the first ones that
    were configured in the controller.
    """

    columns: dict[str, Array] = field(default_factory=dict)
    stride: int = 1
    payloads: list[tuple[float, ...]] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Number of samples kept."""
        return len(self.columns.get("time", ()))

    def append(self, window: Telemetry) -> None:
        """Add the usable samples of a window with one of the first payloads, if it has torques."""
        names = next((n for n in (_TARGETS, _ACTUALS) if all(name in window for name in n)), None)
        if names is None or (self.samples and names[0] not in self.columns):
            return
        payload = [name for name in PAYLOAD if name in window]
        keep = usable_samples(window, *names, *payload)
        rate = _TARGET_RATE if names is _TARGETS else _ACTUAL_RATE
        tick = np.floor(window.time * rate + 0.5)
        if sample_period(window.time) < 1.0 / (_SPARSE * rate):
            keep &= np.diff(tick, prepend=-np.inf) != 0
        keep &= tick % self.stride == 0
        if "payload" in window:
            center = window.columns.get("payload_cog", np.zeros((len(window), 3)))
            configured = np.round(np.column_stack([window["payload"], center]), 4)
            for entry in map(tuple, np.unique(configured[keep], axis=0).tolist()):
                if entry not in self.payloads[:_MOST_PAYLOADS]:
                    self.payloads.append(entry)
            del self.payloads[_MOST_PAYLOADS:]
            keep &= [tuple(row) in self.payloads for row in configured.tolist()]
        rows = {"time": window.time, **{name: window[name] for name in (*names, *payload)}}
        if not keep.any() or (self.columns and set(rows) != set(self.columns)):
            return
        for name, part in rows.items():
            before = self.columns.get(name, part[:0])
            self.columns[name] = np.concatenate([before, part[keep]])
        while self.samples > _MOST and names is _TARGETS:
            self.stride *= 2
            even = np.floor(self.columns["time"] * rate + 0.5) % self.stride == 0
            self.columns = {name: part[even] for name, part in self.columns.items()}
        self.columns = {name: part[:_MOST] for name, part in self.columns.items()}

    def telemetry(self, source: str) -> Telemetry:
        """The samples kept; `source` names them."""
        columns = dict(self.columns)
        time = columns.pop("time")
        gaps = () if "target_q" in columns else find_gaps(time, sample_period(time))
        return Telemetry(time, columns, RecordingInfo(source=source), gaps)
