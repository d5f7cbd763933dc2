"""Operating conditions that the robot reports: payload, speed scaling, joint temperatures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from ur_energy_model.model.inertial_parameters import tensor_of
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array, Mask

PAYLOAD: tuple[str, ...] = ("payload", "payload_cog", "payload_inertia")
"""RTDE fields of the payload that is set in the controller."""


class OperatingConditions:
    """The most recent operating conditions.

    Args:
        setup: of the model.

    Attributes:
        setup: mounting of the model, with the payload set in the controller once it is known.
        speed_scaling: product of slider and limiter.
        temperature: of the joints [n], degC; None where unknown.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.speed_scaling = 1.0
        self.temperature: Array | None = None
        self._payload_known = False

    def continue_from(self, earlier: OperatingConditions) -> None:
        """Take over the conditions of another model of the same arm."""
        self.speed_scaling, self.temperature = earlier.speed_scaling, earlier.temperature
        if earlier._payload_known:
            self._set_payload(earlier.setup.payload)

    def update(self, batch: Telemetry) -> None:
        """Take over the last values of a batch."""
        columns = batch.columns
        if "joint_temperatures" in columns:
            self.temperature = columns["joint_temperatures"][-1]
        if "speed_scaling" in columns:
            scaling = float(columns["speed_scaling"][-1])
            if "target_speed_fraction" in columns:
                scaling *= float(columns["target_speed_fraction"][-1])
            if not math.isnan(scaling):
                self.speed_scaling = scaling
        if "payload" in columns and "payload_cog" in columns:
            told = (columns[name][-1] for name in PAYLOAD if name in columns)
            empty = columns["payload"][-1] == 0.0 == self.setup.payload.mass
            if not empty and not any(np.isnan(values).any() for values in told):
                self._take_payload(columns, len(batch) - 1)

    def parts(self, batch: Telemetry) -> Iterator[tuple[slice, Setup]]:
        """Parts of a batch with one payload each, and their setups; keeps the last one."""
        columns, n = batch.columns, len(batch)
        if "payload" not in columns or "payload_cog" not in columns:
            yield slice(0, n), self.setup
            return
        told = np.column_stack([columns[name] for name in PAYLOAD if name in columns])
        known_rows = np.asarray(~np.isnan(told).any(axis=1))
        if not known_rows.all():
            yield from self._parts_where_known(batch, known_rows)
            return
        edges = np.flatnonzero((np.diff(told, axis=0) != 0.0).any(axis=1)) + 1
        for start, stop in pairwise([0, *edges.tolist(), n]):
            self._take_payload(columns, start)
            yield slice(start, stop), self.setup

    def _parts_where_known(self, batch: Telemetry, known: Mask) -> Iterator[tuple[slice, Setup]]:
        """Parts of a batch whose payload is not measured at every sample; there the last holds."""
        names = [name for name in PAYLOAD if name in batch.columns]
        last = np.maximum.accumulate(np.where(known, np.arange(len(batch)), -1))
        start = int(np.searchsorted(last, 0))
        if start:
            yield slice(0, start), self.setup
        if start < len(batch):
            columns = {name: batch.columns[name][last[start:]] for name in names}
            for rows, setup in self.parts(Telemetry(batch.time[start:], columns)):
                yield slice(rows.start + start, rows.stop + start), setup

    def _take_payload(self, columns: Mapping[str, Array], row: int) -> None:
        mass, center = columns["payload"][row], columns["payload_cog"][row]
        known = self.setup.payload
        if mass != known.mass or (mass and not np.array_equal(center, known.center_of_mass)):
            self._set_payload(payload_at(columns, row))

    def _set_payload(self, payload: Payload) -> None:
        self._payload_known = True
        self.setup = Setup(self.setup.gravity, payload)


def payload_at(columns: Mapping[str, Array], row: int) -> Payload:
    """The payload set in the controller at a sample."""
    tensor = np.zeros((3, 3))
    if "payload_inertia" in columns:
        xx, yy, zz, xy, xz, yz = columns["payload_inertia"][row]
        entered = tensor_of(np.array([xx, xy, yy, xz, yz, zz]))
        # Users may enter anything; an impossible body counts as a point mass.
        tensor = entered if np.linalg.eigvalsh(entered).min() >= 0 else tensor
    return Payload(float(columns["payload"][row]), np.array(columns["payload_cog"][row]), tensor)
