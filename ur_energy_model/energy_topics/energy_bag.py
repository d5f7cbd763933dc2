"""Writes the energy topics of a recording as a bag: `ur_energy estimate --bag`."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.options import LIVE_FIELDS, LiveOptions
from ur_energy_model.energy_topics.bag_messages import EnergyMessages
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import load_robot
from ur_energy_model.telemetry.bag.message_bag import MessageBag
from ur_energy_model.telemetry.bag.message_encoder import StampRule
from ur_energy_model.telemetry.bag.provenance import custom_of_info
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.runs import time_blocks
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Progress

SUMMARY_RATE = 1.0
"""Rate of energy/summary [Hz], as the estimator publishes it."""
CHUNK_MESSAGES = 50
"""Messages of a topic that are encoded together."""


def write_energy_bag(
    model: EnergyModel,
    recording: Path,
    bag: Path,
    *,
    name: str | None = None,
    model_path: str = "",
    rate: float = 50.0,
    same_arm: bool = False,
    progress: Progress | None = None,
) -> None:
    """Write what the estimator would have published of a recording, at the times of its samples.

    Topics are in the namespace of the recording, and joint names have its prefix.

    Cycles are those that `CycleDetector` finds by itself.

    Args:
        model: of the arm.
        recording: bag of telemetry.
        bag: directory to make; it must not exist.
        name: of its storage file, default the directory's.
        model_path: of the model file, for energy/summary.
        rate: of the live topics [Hz].
        same_arm: see `model_of_arm`.
        progress: called with fraction (NaN if unknown) and text.

    Raises:
        UrEnergyError: the recording or the model cannot be used.
        OSError: the disk fails.
    """
    writer = _EnergyBag(model, model_path, rate, same_arm)
    writer.write(recording, bag, bag.name if name is None else name, progress)


class _EnergyBag:
    """One pass of the live estimator over a recording."""

    def __init__(self, model: EnergyModel, model_path: str, rate: float, same_arm: bool) -> None:
        self._model, self._robot = model, load_robot(model.robot)
        self._model_path = model_path
        self._period, self._same_arm = 1.0 / rate, same_arm
        self._publishing, self._summarising = Decimator(rate), Decimator(SUMMARY_RATE)
        self._cycles: list[Cycle] = []
        self._stamp = 0
        self._unpublished = False

    def write(self, recording: Path, bag: Path, name: str, progress: Progress | None) -> None:
        """Write the bag."""
        batches = iterate_bag(recording, LIVE_FIELDS)
        first = next(batches)
        info = first.info
        joints = [info.tf_prefix + joint for joint in self._robot.joint_names]
        self._messages = EnergyMessages(joints, self._model_path, info.namespace)
        stamps = StampRule()
        custom = custom_of_info(info, (), host_clock=first.stamp is not None)
        estimator = LiveEstimator(
            self._model,
            self._robot,
            LiveOptions(same_arm=self._same_arm),
            on_cycle=self._cycles.append,
        )
        with MessageBag(bag, name, custom) as out:
            for batch in chain([first], batches):
                self._read(estimator, batch, stamps.stamps(batch), out)
                if progress is not None:
                    progress(float("nan"), f"writing energies: {estimator.samples} samples")
            if self._unpublished:  # the last samples may not fill a period
                self._publish(estimator)
            out.write(self._messages.take())

    def _read(
        self,
        estimator: LiveEstimator,
        batch: Telemetry,
        stamp: NDArray[np.int64],
        out: MessageBag,
    ) -> None:
        for rows in time_blocks(batch.time, self._period):
            estimator.update(batch.cut(rows))
            self._stamp = int(stamp[rows.stop - 1])
            self._unpublished = True
            if self._publishing.due(float(batch.time[rows.stop - 1])):
                self._publish(estimator)
            if len(self._messages) >= CHUNK_MESSAGES:
                out.write(self._messages.take())

    def _publish(self, estimator: LiveEstimator) -> None:
        self._unpublished = False
        snapshot = estimator.snapshot()
        if snapshot is None:
            return
        self._messages.keep(snapshot, self._stamp)
        if self._summarising.due(snapshot.time):
            summary = estimator.snapshot("summary")
            if summary is not None:
                self._messages.keep_summary(summary, self._stamp)
        for cycle in self._cycles:
            self._messages.keep_cycle(cycle, snapshot, self._stamp)
        self._cycles.clear()
