"""One bag, read once: everything the later steps need of it, in constant memory.

While the batches pass, the quality check, the power stage and the filters see them; what a second
pass needs (filtered motion at a reduced rate, the controller's torque, bus power) is spooled.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from ur_energy_model.energy.checks import check_batch, check_robot
from ur_energy_model.errors import RecordingError
from ur_energy_model.identification.dynamics.reference_motion import TARGET_RATE, usable
from ur_energy_model.identification.power.columns import power_rows
from ur_energy_model.identification.power.power_fit import PowerFit
from ur_energy_model.identification.quality.inspector import Inspector, Quality
from ur_energy_model.identification.regression.signals import (
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    sample_period,
)
from ur_energy_model.identification.regression.spool import Spool
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.modes import BRAKES_RELEASED
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry, concatenate, find_gaps
from ur_energy_model.typing import Array, Progress

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
_ENOUGH_TARGETS = 3000
"""Noise-free samples of target_moment beyond which more of them add nothing."""
_SPOOLED_ROWS = 20_000


@dataclass
class Recording:
    """What is kept of one bag.

    Attributes:
        path: as given by the user.
        info: what made it.
        samples: number read.
        duration: without gaps [s].
        quality: verdict.
        cutoff: of the filter applied [Hz].
        rate: samples per second found [Hz].
        power: bus power, accumulated.
        delay: of actual_q behind target_q [s], NaN where it cannot be told.
        warmth: lowest and highest joint temperatures [n, 2], degC; NaN where not recorded.
    """

    path: Path
    info: RecordingInfo
    quality: Quality
    cutoff: float
    rate: float
    power: PowerFit
    samples: int = 0
    duration: float = 0.0
    delay: float = float("nan")
    warmth: Array = field(default_factory=lambda: np.zeros((0, 2)))
    _motion: Spool = field(repr=False, default_factory=lambda: Spool(1))
    _torque: Spool = field(repr=False, default_factory=lambda: Spool(1))
    _torque_columns: dict[str, int] = field(repr=False, default_factory=dict)
    _supply: Spool = field(repr=False, default_factory=lambda: Spool(1))

    @property
    def dof(self) -> int:
        """Number of joints n."""
        return (self._motion.width - 5) // 6

    @property
    def torque_reference(self) -> str:
        """Whether target_moment belongs to recorded targets or to measured motion, or is absent."""
        if not self._torque_columns or not self._torque.rows:
            return "none"
        return "target" if "target_q" in self._torque_columns else "actual"

    @property
    def told_payload(self) -> Array:
        """Payload first told to the controller, mass and centre [4], kg and m; NaN if unknown."""
        first = next(iter(self.motions()), None)
        return np.full(4, np.nan) if first is None else first.payload[0]

    def motions(self) -> Iterator[FilteredMotion]:
        """Filtered motion, in order."""
        for block in self._motion:
            yield FilteredMotion.from_rows(block)

    def torque_telemetry(self) -> Iterator[Telemetry]:
        """target_moment and the motion it belongs to, as recorded (targets at a reduced rate)."""
        thin = 1
        if self.torque_reference == "target":
            thin = max(1, self._torque.rows // _ENOUGH_TARGETS)
        for block in _joined(self._torque):
            block = block[::thin]
            time, columns, at = block[:, 0], {}, 1
            for name, width in self._torque_columns.items():
                columns[name] = block[:, at] if width == 0 else block[:, at : at + width]
                at += max(width, 1)
            gaps = () if self.torque_reference == "target" else find_gaps(time, 1 / self.rate)
            yield Telemetry(time, columns, self.info, gaps)

    def supply(self) -> Iterator[tuple[Array, Array, Array, Array]]:
        """Time [samples], speed and current [samples, n] and bus power [samples], as recorded."""
        n = self.dof
        for block in self._supply:
            yield block[:, 0], block[:, 1 : 1 + n], block[:, 1 + n : 1 + 2 * n], block[:, -1]

    def close(self) -> None:
        """Release temporary files."""
        for spool in (self._motion, self._torque, self._supply):
            spool.close()


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
        self._motion, self._supply = Spool(5 + 6 * n), Spool(2 + 2 * n)
        self._torque: Spool | None = None
        self._torque_columns: dict[str, int] = {}
        self._stream: MotionStream | None = None
        self._lag = np.zeros(2)
        self._warmth = np.column_stack([np.full(n, np.nan), np.full(n, np.nan)])
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
            self._power.add(batch)
            self._spool(batch)
            if self._stream is None:
                first.append(batch)
                if first[-1].time[-1] - first[0].time[0] >= _LOOK_AHEAD:
                    self._begin(first)
            else:
                self._take(self._stream.add(batch))
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
            quality=self._inspector.quality(),
            cutoff=self._stream.cutoff,
            rate=self._stream.rate,
            power=self._power,
            samples=samples,
            duration=duration,
            delay=float(self._lag[0] / self._lag[1]) if self._lag[1] > 0 else float("nan"),
            warmth=self._warmth,
            _motion=self._motion,
            _torque=self._torque or Spool(1),
            _torque_columns=self._torque_columns,
            _supply=self._supply,
        )

    def _begin(self, first: list[Telemetry]) -> None:
        joined = concatenate(first)
        self._stream = MotionStream(
            self.robot.dof, choose_cutoff(joined), sample_period(joined.time)
        )
        for batch in first:
            self._take(self._stream.add(batch))

    def _inspect(self, batch: Telemetry) -> None:
        if self._inspector is None:
            self._inspector = Inspector(batch.info)
        self._inspector.add(batch)

    def _take(self, motions: list[FilteredMotion]) -> None:
        for motion in motions:
            low = np.fmin.reduce(motion.temperature, axis=0)
            high = np.fmax.reduce(motion.temperature, axis=0)
            self._warmth[:, 0] = np.fmin(self._warmth[:, 0], low)
            self._warmth[:, 1] = np.fmax(self._warmth[:, 1], high)
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
            self._torque = Spool(1 + width)
        targets = "target_q" in self._torque_columns
        keep = usable(batch, *(_TARGETS if targets else _ACTUALS))
        if targets:
            tick = np.floor(batch.time * TARGET_RATE)
            keep &= np.diff(tick, prepend=self._last_tick) != 0
            self._last_tick = float(tick[-1])
        rest = [batch[name][keep] for name in self._torque_columns]
        self._torque.append(np.column_stack([batch.time[keep], *rest]))


def _has(batch: Telemetry, names: tuple[str, ...]) -> bool:
    """Whether a batch has these columns, with anything in them."""
    return all(name in batch and np.isfinite(batch[name]).any() for name in names)


def _joined(spool: Spool) -> Iterator[Array]:
    """Blocks of a spool put together to a useful size."""
    waiting: list[Array] = []
    for block in spool:
        if len(block):
            waiting.append(block)
        if sum(map(len, waiting)) >= _SPOOLED_ROWS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
