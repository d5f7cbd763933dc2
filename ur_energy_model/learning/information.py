"""What has been learned of an arm so far: sums in constant memory, and the model fitted to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
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
from ur_energy_model.identification.friction_data import WARMTH, CurrentData
from ur_energy_model.identification.friction_fit import SHORTEST_MOTION, CurrentRegression
from ur_energy_model.identification.friction_stages import PreslidingFit, with_travels
from ur_energy_model.identification.power_fit import CapacitorFit, PowerFit, with_capacitor
from ur_energy_model.identification.power_structures import PowerPrior, power_rows
from ur_energy_model.identification.reflected_inertia import expected_inertia
from ur_energy_model.model.document import document
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.model_file import model_from_document
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.setup import Setup
from ur_energy_model.robot_modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, find_gaps
from ur_energy_model.typing import Array


class RestFit:
    """What shows at standstill and in regeneration only: presliding travels, bus capacitor.

    Neither is linear in its parameters, so that errors are accumulated with the last model fitted,
    and its successor takes the best candidates.

    Args:
        model: that errors are computed with.
        learned: whether it was fitted to this arm; else its own values are kept.
    """

    def __init__(self, model: EnergyModel, *, learned: bool) -> None:
        self.model, self.learned = model, learned
        self._presliding, self._capacitor = PreslidingFit(model), CapacitorFit(model)

    def add_motion(
        self, motion: FilteredMotion, link_torque: Array, narrow: ParallelFilter
    ) -> None:
        """Add a motion with its links' torque [samples, n], joint side, N m."""
        if self.learned:
            self._presliding.start_recording()
            self._presliding.accumulate(motion, link_torque, narrow)

    def add_supply(self, window: Telemetry) -> None:
        """Add the bus power of a window."""
        rows = power_rows(window) if self.learned else None
        if rows is None:
            return
        use = np.isin(rows.mode, BRAKES_RELEASED)
        self._capacitor.start_recording()
        self._capacitor.accumulate(rows.time[use], rows.qd[use], rows.current[use], rows.power[use])

    def completed(self, model: EnergyModel) -> EnergyModel:
        """A newly fitted model with travels and capacitor energy."""
        if not self.learned:
            known = np.array([joint.friction.presliding for joint in self.model.joints])
            return with_travels(with_capacitor(model, np.zeros(len(self._capacitor.errors))), known)
        return with_travels(
            with_capacitor(model, self._capacitor.errors), self._presliding.travels()
        )

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "model": document(self.model),
            "learned": self.learned,
            "presliding": self._presliding.saved(),
            "capacitor": self._capacitor.errors,
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> RestFit:
        """The fit that `saved` describes."""
        out = cls(model_from_document(saved["model"], "state"), learned=saved["learned"])
        out._presliding.restore(saved["presliding"])
        out._capacitor.errors = saved["capacitor"]
        return out


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


class TorqueRows:
    """target_moment with its motion, thinned to what determines setup and inertias, bounded.

    Recorded targets are noise-free: a few thousand of them spread over all the time suffice.
    Measured motion must be continuous to be filtered: the first samples are kept.
    """

    def __init__(self) -> None:
        self.columns: dict[str, Array] = {}
        """Values by field name, "time" among them."""
        self._stride = 1
        self._payloads: set[tuple[float, ...]] = set()

    @property
    def samples(self) -> int:
        """Number of samples kept."""
        return len(self.columns.get("time", ()))

    @property
    def from_targets(self) -> bool:
        """Whether the motion is that of recorded targets."""
        return "target_q" in self.columns

    def append(self, window: Telemetry) -> None:
        """Add the usable samples of a window, if it has target_moment."""
        names = next((n for n in (_TARGETS, _ACTUALS) if all(name in window for name in n)), None)
        if names is None or (self.samples and names[0] not in self.columns):
            return
        payload = [name for name in PAYLOAD if name in window]
        keep = usable_samples(window, *names, *payload)
        rate = _TARGET_RATE if names is _TARGETS else _ACTUAL_RATE
        tick = np.floor(window.time * rate + 0.5)
        if sample_period(window.time) < 1.0 / (_SPARSE * rate):
            keep &= np.diff(tick, prepend=-np.inf) != 0
        keep &= tick % self._stride == 0
        self._append(
            {"time": window.time[keep], **{n: window[n][keep] for n in (*names, *payload)}}
        )

    def shortened(self) -> TorqueRows:
        """A part of the samples, for a session that is over."""
        out = TorqueRows()
        step = max(1, -(-self.samples // _KEPT)) if self.from_targets else 1
        out.columns = {name: part[::step] for name, part in self.columns.items()}
        out._payloads, out._stride = self._payloads, self._stride
        return out

    def telemetry(self, source: str) -> Telemetry:
        """The samples kept; `source` names them."""
        columns = {name: values for name, values in self.columns.items() if name != "time"}
        time = self.columns["time"]
        gaps = () if self.from_targets else find_gaps(time, sample_period(time))
        return Telemetry(time, columns, RecordingInfo(source=source), gaps)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        payloads = sorted(self._payloads)
        return {"columns": self.columns, "stride": self._stride, "payloads": payloads}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> TorqueRows:
        """The rows that `saved` describes."""
        out = cls()
        out.columns, out._stride = dict(saved["columns"]), saved["stride"]
        out._payloads = set(map(tuple, saved["payloads"]))
        return out

    def _append(self, rows: dict[str, Array]) -> None:
        rows = self._with_known_payload(rows)
        if self.columns and set(rows) != set(self.columns):  # fields differ from those before
            return
        if not len(rows["time"]):
            return
        joined = {
            name: np.concatenate([self.columns[name], part]) if self.columns else part
            for name, part in rows.items()
        }
        while len(joined["time"]) > _MOST and "target_q" in joined:
            self._stride *= 2
            even = np.floor(joined["time"] * _TARGET_RATE + 0.5) % self._stride == 0
            joined = {name: part[even] for name, part in joined.items()}
        self.columns = {name: part[:_MOST] for name, part in joined.items()}

    def _with_known_payload(self, rows: dict[str, Array]) -> dict[str, Array]:
        """The rows with one of the first payloads configured in the controller."""
        if "payload" not in rows:
            return rows
        center = rows.get("payload_cog", np.zeros((len(rows["time"]), 3)))
        configured = np.round(np.column_stack([rows["payload"], center]), 4)
        for entry in map(tuple, np.unique(configured, axis=0).tolist()):
            if len(self._payloads) < _MOST_PAYLOADS:
                self._payloads.add(entry)
        known = np.array([tuple(row) in self._payloads for row in configured.tolist()], dtype=bool)
        return {name: part[known] for name, part in rows.items()}


_MOST_SETUP_SESSIONS = 3
"""Sessions whose samples are kept; the inertias are common to them."""
_GROWTH = 1.3
"""Factor by which the samples must grow before an undecided setup is estimated again."""
_SAME = np.radians(0.5)
"""Mountings that differ by less are the same [rad]."""


class SetupEstimate:
    """Mounting, payloads and inertias from target_moment, estimated anew as samples arrive.

    A mounting may change between sessions, the inertias of the arm do not.

    Args:
        robot: the arm.
        fallback: setup where target_moment shows none.

    Attributes:
        estimate: setups and inertias; None without target_moment.
    """

    def __init__(self, robot: RobotDescription, fallback: Setup) -> None:
        self.robot, self.fallback = robot, fallback
        self.estimate: DynamicsEstimate | None = None
        self._rows: list[TorqueRows] = [TorqueRows()]
        self._first = 0
        """Number of the first session whose samples are kept."""
        self._used = 0
        """Samples of this session in the last estimate."""

    def start_session(self) -> None:
        """Start another session."""
        if not self._rows[-1].samples:
            return
        self._rows = [*(rows.shortened() for rows in self._rows), TorqueRows()]
        self._used = 0
        if len(self._rows) > _MOST_SETUP_SESSIONS:
            self._first += 1
            del self._rows[0]

    def add(self, window: Telemetry) -> bool:
        """Add usable samples; True if the mounting turns out to be another one."""
        rows = self._rows[-1]
        rows.append(window)
        if self._decided or rows.samples < max(1, _GROWTH * self._used):
            return False
        return self.update()

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
        own = [entry for entry in found.recordings if entry.source == self._current]
        if own:
            longest = max(own, key=lambda entry: entry.samples)
            found = replace(found, setup=longest.setup, setup_source=longest.setup_source)
        self.estimate = found
        return bool(angle_between(before, self._gravity()) > _SAME)

    def _gravity(self) -> Array:
        return self.dynamics(RecordingInfo()).actual_setup(np.full(4, np.nan)).gravity

    def dynamics(self, info: RecordingInfo) -> RecordingDynamics:
        """Dynamics of the arm in this session, for samples with this information."""
        named, fallback = replace(info, source=self._current), self.fallback
        if self.estimate is not None:
            named, fallback = replace(named, gravity=None), self.estimate.setup
        return RecordingDynamics(self.robot, named, self.estimate, None, fallback)

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {"rows": [rows.saved() for rows in self._rows], "first": self._first}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved samples."""
        self._rows = [TorqueRows.restored(rows) for rows in saved["rows"]]
        self._first = saved["first"]
        self.update()

    @property
    def _decided(self) -> bool:
        """Whether target_moment determines the setup of this session."""
        return self.estimate is not None and any(
            entry.source == self._current and entry.setup_source == "estimated"
            for entry in self.estimate.recordings
        )

    @property
    def _current(self) -> str:
        return self._source(len(self._rows) - 1)

    def _source(self, index: int) -> str:
        return f"session {self._first + index}"


_MOST_SESSIONS = 6
_MOST_BLOCKS = 24
"""Blocks of time kept of a session."""


@dataclass(frozen=True)
class ArmMotion:
    """A filtered motion with one payload, and the rigid body that moved.

    Attributes:
        motion: [samples, n].
        dynamics: of links and payload.
        narrow: filter for comparisons of currents.
    """

    motion: FilteredMotion
    dynamics: ArmDynamics
    narrow: ParallelFilter


class ArmInformation:
    """Sums over all sessions of one arm, and what they determine.

    Args:
        robot: the arm, n joints.
        prior: the model that learning started from.
    """

    def __init__(self, robot: RobotDescription, prior: EnergyModel) -> None:
        self.robot, self.prior = robot, prior
        self.powers: list[PowerFit] = []
        self._known_power = PowerPrior.from_model(prior, robot)
        self.setup = SetupEstimate(robot, prior.setup)
        self.cutoff: float | None = None
        self._inertia = expected_inertia(robot)
        self.currents = CurrentRegression(
            robot, "auto", warm=True, inertia=self._inertia, most_blocks=_MOST_BLOCKS, known=prior
        )
        self.rest = RestFit(prior, learned=False)
        self.start_session()

    def start_session(self) -> None:
        """Start another session, with its own standby power and friction level."""
        self.powers.append(PowerFit(self.robot, self._known_power))
        self.currents.start_session()
        self.setup.start_session()
        if len(self.powers) > _MOST_SESSIONS:
            del self.powers[0]
            del self.currents.data.sessions[0]

    def saved(self) -> dict[str, Any]:
        """Everything needed to continue."""
        return {
            "powers": [power.saved() for power in self.powers],
            "setup": self.setup.saved(),
            "cutoff": self.cutoff,
            "currents": plain(self.currents.data, arrays=True),
            "rest": self.rest.saved(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Continue with saved sums."""
        self.powers = [
            PowerFit(self.robot, self._known_power).restore(power) for power in saved["powers"]
        ]
        self.setup.restore(saved["setup"])
        self.cutoff = saved["cutoff"]
        self.currents.data = built(CurrentData, saved["currents"])
        self.rest = RestFit.restored(saved["rest"])

    def add(self, window: Telemetry) -> list[ArmMotion]:
        """Add a window of usable samples; returns its motions."""
        self.powers[-1].accumulate(window)
        if self.setup.add(window):
            self.currents.data.restart_session()
        motions = []
        for part in self._filtered(window):
            link = part.dynamics.inverse_dynamics(part.motion.q, part.motion.qd, part.motion.qdd)
            load = link + self._inertia.value * part.motion.qdd
            self.currents.accumulate(part.motion, load, part.narrow)
            self.rest.add_motion(part.motion, link, part.narrow)
            motions.append(part)
        if self.powers[-1].supply_rested:
            self.rest.add_supply(window)
        return motions

    def fit(self) -> EnergyModel | None:
        """The model that all data give; None if no joint has moved yet.

        Currents of the session that were accumulated with another mounting are left out.

        Raises:
            IdentificationError: currents that contradict the torques.
            ModelFileError: values that no arm can have.
        """
        if self.setup.update():
            self.currents.data.restart_session()
        if self.currents.data.moving_time.max(initial=0.0) < SHORTEST_MOTION:
            return None
        estimate = self.setup.estimate
        inertia = inertia_from_torque(self.robot, estimate)
        low, high = self.currents.data.temperature.T
        warm = bool((high - low > WARMTH).any())
        joints = self.currents.rebased(inertia, warm=warm).fit()
        stated = self.setup.dynamics(RecordingInfo()).stated(np.full(4, np.nan))
        body = BodyResults(self.robot, estimate, stated, inertia)
        found = self.rest.completed(fit_drives(body, joints, self.powers, "physical").model)
        # As it will be read from a file, so that a restart changes nothing.
        model = model_from_document(document(found), "learned model")
        self.rest = RestFit(model, learned=True)
        return model

    def _filtered(self, window: Telemetry) -> list[ArmMotion]:
        names = ("actual_q", "actual_qd", "actual_current")
        if any(name not in window for name in names):
            return []
        if self.cutoff is None:
            if np.abs(np.nan_to_num(window["actual_qd"])).max() < 0.05:
                return []
            self.cutoff = choose_cutoff(window)
        stream = MotionStream(self.robot.dof, self.cutoff, sample_period(window.time))
        narrow, dynamics = ParallelFilter(self.cutoff), self.setup.dynamics(window.info)
        return [
            ArmMotion(part, arm, narrow)
            for motion in (*stream.process(window), *stream.finish())
            for part, arm in dynamics.parts(motion)
        ]
