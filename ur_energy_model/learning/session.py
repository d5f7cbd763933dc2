# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Data of a session of learning: motions with the most information, targets, sums of bus power.

Filtered motions are saved with two bytes per value: 16-bit numbers over the range of each
column, whose steps are far below the noise of filtered measurements. The differences of
consecutive numbers are stored, since they compress better.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.codec import built, plain
from ur_energy_model.identification.buffers import Buffer, TorqueBuffer
from ur_energy_model.identification.filtered_motion import (
    FilteredMotion,
    MotionStream,
    choose_cutoff,
    merged_ranges,
    sample_period,
)
from ur_energy_model.identification.kept_parts import KeptTime, Segment, SegmentSelector
from ur_energy_model.identification.power_fit import PowerData, PowerFit
from ur_energy_model.identification.recording import SessionData
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry
from ur_energy_model.typing import Array

MOST_MOTION = 200.0  # most motion that is kept of a session [s]
_MOST_TARGETS = 600  # number of samples of noise-free targets that are kept of a session
_FIRST_SPEED = 0.05
"""Joint speed of the first motion from which the filter of a session is chosen [rad/s]."""


class Session:
    """Data of a session of an arm with n joints, of bounded size.

    Args:
        name: name of the session.
        power: fit of the power model, which takes the sums of this session.

    Attributes:
        dof: number of joints n.
        motions: parts of the motion with the most information, of bounded length.
        targets: samples of the controller's noise-free target moments.
        info: metadata of the recording, with the session's name as its source.
        cutoff: cut-off frequency of the filter for all motions of the session [Hz]; None
            before it moves.
        samples: number of samples so far.
        seconds: duration of the samples [s].
        warmth: lowest and highest temperature of each joint in motion [n, 2], degC.
        payload: mass [kg] and centre of mass [3], m, that the controller states first.
        payloads: up to two different masses that the controller states [kg].
        begin: controller time of the first sample [s].
    """

    def __init__(self, name: str, power: PowerFit) -> None:
        self.name = name
        self.power = power
        self.dof = power.robot.dof
        self.motions = SegmentSelector(MOST_MOTION)
        self.targets = TorqueBuffer(0.0, _MOST_TARGETS)
        self.info = RecordingInfo(source=name)
        self.cutoff: float | None = None
        self.samples = 0
        self.seconds = 0.0
        self.warmth = np.full((self.dof, 2), np.nan)
        self.payload = np.full(4, np.nan)
        self.payloads: list[float] = []
        self.begin = np.nan

    def add(self, window: Telemetry) -> list[FilteredMotion]:
        """Add a window of usable samples.

        Args:
            window: samples without gaps and without impossible values.

        Returns:
            Filtered motions of the window; none before the arm moves.
        """
        self.info = replace(window.info, source=self.name)
        self.begin = self.begin if self.samples else float(window.time[0])
        self.power.accumulate(window)
        self.targets.append(window)
        self.samples += len(window)
        self.seconds += window.duration
        if self.cutoff is None:
            if np.abs(np.nan_to_num(window["actual_qd"])).max() < _FIRST_SPEED:
                return []
            self.cutoff = choose_cutoff(window)
        stream = MotionStream(self.dof, self.cutoff, sample_period(window.time))
        motions = [*stream.process(window), *stream.finish()]
        for motion in motions:
            self.warmth = merged_ranges(self.warmth, motion.temperature_range)
            if not self.motions.parts:
                self.payload = motion.payload[0]
            masses = motion.payload[:, 0]
            stated = masses[np.isfinite(masses)].round(4)
            all_masses = {*self.payloads, *stated.tolist()}
            self.payloads = sorted(all_masses)[:2]
        if any(len(motion) > 1 for motion in motions):
            self.motions.add(Segment(self.dof, tuple(motions), None))
        return motions

    def data(self, place: int = 0) -> SessionData:
        """The session in the form that the fits of the identification use, in memory.

        Args:
            place: place of the session in the order of time, from 0.
        """
        motions = Buffer[FilteredMotion](most=0)
        for segment in self.motions.parts:
            for motion in segment.motions:
                motions.append(motion)
        assert self.cutoff is not None
        torque = self.targets
        period = 1.0
        if torque.reference == "none":  # without noise-free targets: the filtered motion
            torque = TorqueBuffer()
            for motion in motions:
                if len(motion) > 1 and np.isfinite(motion.moment).all():
                    period = motion.period
                    torque.append(self._with_moments(motion))
        return SessionData(
            path=Path(self.name),
            info=replace(self.info, gravity=None),
            cutoff=self.cutoff,
            rate=1.0 / period,
            power=self.power,
            samples=self.samples,
            duration=self.seconds,
            warmth=self.warmth,
            controller_payload=self.payload,
            payloads=tuple(self.payloads),
            kept=KeptTime(self.motions.kept, 0.0),
            motions=motions,
            samples_kept=Buffer(),
            _torque=torque,
            began=float(place),
        )

    def _with_moments(self, motion: FilteredMotion) -> Telemetry:
        """Target moments of a filtered motion with their positions, speeds and payload."""
        columns = {
            "target_moment": motion.moment,
            "actual_q": motion.q,
            "actual_qd": motion.qd,
        }
        if np.isfinite(motion.payload).all():
            columns["payload"] = motion.payload[:, 0]
            columns["payload_cog"] = motion.payload[:, 1:]
        return Telemetry(motion.time, columns, self.info)

    _KEPT = (
        "name",
        "cutoff",
        "samples",
        "seconds",
        "warmth",
        "payload",
        "payloads",
        "begin",
    )

    def saved(self) -> dict[str, Any]:
        """Everything that `restored` needs: numbers, text and arrays."""
        return {
            **{name: getattr(self, name) for name in self._KEPT},
            "limit": self.motions.limit,
            "motions": _packed([part.motions for part in self.motions.parts]),
            "targets": self.targets.saved(),
            "power": plain(self.power.data, arrays=True),
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any], power: PowerFit) -> Session:
        """A session as it was saved.

        Args:
            saved: what `saved` gave.
            power: fit of the power model, whose arm and known values hold.
        """
        power = PowerFit(power.robot, power.known, built(PowerData, saved["power"]))
        session = cls(saved["name"], power)
        for name in cls._KEPT:
            setattr(session, name, saved[name])
        session.motions.limit = saved["limit"]
        session.motions.parts = [
            Segment(session.dof, motions, None) for motions in _unpacked(saved["motions"])
        ]
        session.targets.restore(saved["targets"])
        return session


_CHANNELS = ("q", "qd", "qdd", "current", "moment")  # columns with 16-bit numbers
_STEPS = 65535  # largest 16-bit number


def _packed(segments: Sequence[Sequence[FilteredMotion]]) -> dict[str, Any]:
    """Motions of segments as arrays, for `_unpacked`."""
    motions = list(chain.from_iterable(segments))
    if not motions:
        return {"segments": []}
    packed: dict[str, Any] = {
        "segments": [len(segment) for segment in segments],
        "lengths": np.array([len(motion) for motion in motions]),
        "time": np.array([motion.time[[0, -1]] for motion in motions]),
    }
    for name in ("temperature", "payload"):
        values = np.concatenate([getattr(motion, name) for motion in motions])
        packed[name] = values.astype(np.float32)
    for name in _CHANNELS:
        values = np.concatenate([getattr(motion, name) for motion in motions])
        low = np.fmin.reduce(values)
        step = np.maximum(np.fmax.reduce(values) - low, 1e-12) / _STEPS
        if not np.isfinite(values).all():  # not recorded, or not in all of the session
            low = np.full_like(low, np.nan)
            step = np.ones_like(step)
            values = values[:0]
        codes = np.rint((values - low) / step).astype(np.uint16)
        differences = np.diff(codes.T, prepend=np.uint16(0))
        packed[name] = {"low": low, "step": step, "codes": differences}
    return packed


def _unpacked(packed: Mapping[str, Any]) -> Iterator[tuple[FilteredMotion, ...]]:
    """Motions of each segment, from what `_packed` gave."""
    if not packed["segments"]:
        return
    ends = np.cumsum(packed["lengths"])
    channels: dict[str, Array] = {}
    for name in _CHANNELS:
        low = packed[name]["low"]
        step = packed[name]["step"]
        codes = np.cumsum(packed[name]["codes"], axis=1, dtype=np.uint16).T
        if not len(codes):  # not recorded: `low` is NaN
            codes = np.zeros((ends[-1], len(low)), dtype=np.uint16)
        channels[name] = low + step * codes
    for name in ("temperature", "payload"):
        channels[name] = packed[name].astype(float)
    motions = []
    start = 0
    for (first, last), end in zip(packed["time"].tolist(), ends.tolist(), strict=True):
        columns = {name: values[start:end] for name, values in channels.items()}
        time = np.linspace(first, last, end - start)
        motions.append(FilteredMotion(time=time, **columns))
        start = end
    remaining = iter(motions)
    for count in packed["segments"]:
        yield tuple(islice(remaining, count))
