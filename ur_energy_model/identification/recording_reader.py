"""One bag, read once: filters, quality check and power stage see every batch as it passes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from ur_energy_model.energy.recording_checks import check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.dynamics.reference_blocks import TARGET_RATE
from ur_energy_model.identification.power.power_columns import power_rows
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.quality.inspector import Inspector
from ur_energy_model.identification.quality.verdict import judge
from ur_energy_model.identification.recording import Recording
from ur_energy_model.identification.regression.cutoff import choose_cutoff, sample_period
from ur_energy_model.identification.regression.filtered_motion import FilteredMotion, merged_ranges
from ur_energy_model.identification.regression.motion_stream import MotionStream
from ur_energy_model.identification.regression.usable_samples import usable_samples
from ur_energy_model.identification.row_buffer import RowBuffer
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate
from ur_energy_model.typing import Progress

FIELDS: tuple[str, ...] = (
    "target_q", "target_qd", "target_qdd", "target_moment", "target_current",
    "actual_q", "actual_qd", "actual_current", "joint_temperatures", "joint_mode",
    "actual_robot_voltage", "actual_robot_current", "actual_main_voltage",
    "payload", "payload_cog", "payload_inertia",
    "robot_mode", "safety_mode", "speed_scaling", "target_speed_fraction",
)  # fmt: skip
"""Fields that identification can use; the rest of a bag is not read."""
REQUIRED = ("actual_q", "actual_qd", "actual_current")
_TARGETS = ("target_q", "target_qd", "target_qdd", "target_moment")
_ACTUALS = ("actual_q", "actual_qd", "target_moment")
_PAYLOAD = ("payload", "payload_cog", "payload_inertia")
_LOOK_AHEAD = 60.0


def read_recording(
    path: str | Path, robot: RobotDescription, *, progress: Progress | None = None
) -> Recording:
    """Read a bag once.

    Raises:
        RecordingError: no such bag, empty, damaged, or values that are not finite.
        MissingFieldError: a field that identification needs is not in it.
        WrongRobotError: it was recorded on another robot.
    """
    return _Reader(Path(path), robot).read(progress)


def digest(path: Path) -> str:
    """SHA-256 over a bag's files, in the order of their names."""
    total = hashlib.sha256()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            with file.open("rb") as stream:
                for piece in iter(lambda: stream.read(1 << 20), b""):
                    total.update(piece)
    return total.hexdigest()


class _Reader:
    """The state of reading one bag."""

    def __init__(self, path: Path, robot: RobotDescription) -> None:
        self.path, self.robot = path, robot
        n = robot.dof
        self._inspector: Inspector | None = None
        self._power = PowerFit(robot)
        self._motion, self._supply = RowBuffer(5 + 6 * n), RowBuffer(2 + 2 * n)
        self._torque: RowBuffer | None = None
        self._torque_columns: dict[str, int] = {}
        self._stream: MotionStream | None = None
        self._lag = np.zeros(2)
        self._warmth = np.full((n, 2), np.nan)
        self._last_tick = -np.inf

    def read(self, progress: Progress | None) -> Recording:
        first: list[Telemetry] = []
        samples, duration = 0, 0.0
        info = RecordingInfo(source=str(self.path))
        for batch in iterate_bag(self.path, FIELDS):
            if not len(batch):
                continue
            if samples == 0:
                info = batch.info
                check_robot(self.path, info, self.robot)
            check_batch(self.path, batch, REQUIRED, self.robot.dof)
            samples += len(batch)
            duration += batch.duration
            self._inspect(batch)
            self._power.accumulate(batch)
            self._spool(batch)
            if self._stream is None:
                first.append(batch)
                if first[-1].time[-1] - first[0].time[0] >= _LOOK_AHEAD:
                    self._begin(first)
            else:
                self._take(self._stream.process(batch))
            if progress is not None:
                progress(float("nan"), f"reading {self.path.name}: {samples} samples")
        if samples == 0:
            raise RecordingError(self.path, "holds no samples", "record again")
        if self._stream is None:
            self._begin(first)
        assert self._stream is not None
        assert self._inspector is not None
        self._take(self._stream.finish())
        return Recording(
            path=self.path,
            info=info,
            quality=judge(self._inspector),
            cutoff=self._stream.cutoff,
            rate=self._stream.rate,
            power=self._power,
            samples=samples,
            duration=duration,
            delay=float(self._lag[0] / self._lag[1]) if self._lag[1] > 0 else float("nan"),
            warmth=self._warmth,
            _motion=self._motion,
            _torque=self._torque or RowBuffer(1),
            _torque_columns=self._torque_columns,
            _supply=self._supply,
        )

    def _begin(self, first: list[Telemetry]) -> None:
        joined = concatenate(first)
        self._stream = MotionStream(
            self.robot.dof, choose_cutoff(joined), sample_period(joined.time)
        )
        for batch in first:
            self._take(self._stream.process(batch))

    def _inspect(self, batch: Telemetry) -> None:
        if self._inspector is None:
            self._inspector = Inspector(batch.info)
        self._inspector.observe(batch)

    def _take(self, motions: list[FilteredMotion]) -> None:
        for motion in motions:
            self._warmth = merged_ranges(self._warmth, motion.temperature_range)
            self._motion.append(motion.rows)

    def _spool(self, batch: Telemetry) -> None:
        rows = power_rows(batch)
        if rows is not None:
            use = np.isin(rows.mode, BRAKES_RELEASED)
            self._supply.append(
                np.column_stack([rows.time, rows.qd, rows.current, rows.power])[use]
            )
        self._spool_torque(batch)
        if "target_q" in batch and "target_qd" in batch:
            behind = batch["target_q"] - batch["actual_q"]
            speed = batch["target_qd"]
            good = np.isfinite(behind) & np.isfinite(speed)
            self._lag += [float((behind * speed)[good].sum()), float(np.square(speed)[good].sum())]

    def _spool_torque(self, batch: Telemetry) -> None:
        if self._torque is None:
            needed = next((names for names in (_TARGETS, _ACTUALS) if _has(batch, names)), ())
            if not needed:
                return
            told = [name for name in _PAYLOAD if name in batch]
            self._torque_columns = {
                name: batch[name].shape[1] if batch[name].ndim == 2 else 0
                for name in (*needed, *told)
            }
            width = sum(max(width, 1) for width in self._torque_columns.values())
            self._torque = RowBuffer(1 + width)
        targets = "target_q" in self._torque_columns
        keep = usable_samples(batch, *(_TARGETS if targets else _ACTUALS))
        if targets:
            tick = np.floor(batch.time * TARGET_RATE)
            keep &= np.diff(tick, prepend=self._last_tick) != 0
            self._last_tick = float(tick[-1])
        rest = [batch[name][keep] for name in self._torque_columns]
        self._torque.append(np.column_stack([batch.time[keep], *rest]))


def _has(batch: Telemetry, names: tuple[str, ...]) -> bool:
    """Whether a batch has these columns, with anything in them."""
    return all(name in batch and np.isfinite(batch[name]).any() for name in names)
