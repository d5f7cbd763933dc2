"""What changes while the arm works and the robot tells: payload, speed scaling, temperatures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Array


class OperatingConditions:
    """The newest values that telemetry tells.

    Attributes:
        setup: mounting of the model, and the payload that the controller was told of; the
            model's payload until then.
        speed_scaling: product of slider and limiter.
        temperature: of the joints [n], degC; None where unknown.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.speed_scaling = 1.0
        self.temperature: Array | None = None
        self._told = False

    def continue_from(self, earlier: OperatingConditions) -> None:
        """Take over what another model's conditions were told of."""
        self.speed_scaling, self.temperature = earlier.speed_scaling, earlier.temperature
        if earlier._told:
            self._load(earlier.setup.payload)

    def update(self, batch: Telemetry) -> None:
        """Take over the newest values of a batch."""
        columns = batch.columns
        if "joint_temperatures" in columns:
            self.temperature = columns["joint_temperatures"][-1]
        if "speed_scaling" in columns:
            self.speed_scaling = float(columns["speed_scaling"][-1])
            if "target_speed_fraction" in columns:
                self.speed_scaling *= float(columns["target_speed_fraction"][-1])
        for _ in self.parts(batch.cut(slice(len(batch) - 1, None))):
            pass

    def parts(self, batch: Telemetry) -> Iterator[tuple[slice, Setup]]:
        """Parts of a batch with one payload each, and the setup of each; the last one is kept."""
        columns, n = batch.columns, len(batch)
        if "payload" not in columns or "payload_cog" not in columns:
            yield slice(0, n), self.setup
            return
        told = np.column_stack(
            [
                columns[name]
                for name in ("payload", "payload_cog", "payload_inertia")
                if name in columns
            ]
        )
        edges = np.flatnonzero((np.diff(told, axis=0) != 0.0).any(axis=1)) + 1
        for start, stop in pairwise([0, *edges.tolist(), n]):
            mass, center = columns["payload"][start], columns["payload_cog"][start]
            known = self.setup.payload
            if mass != known.mass or (mass and not np.array_equal(center, known.center_of_mass)):
                self._load(told_payload(columns, start))
            yield slice(start, stop), self.setup

    def _load(self, payload: Payload) -> None:
        self._told = True
        self.setup = Setup(self.setup.gravity, payload)


def told_payload(columns: Mapping[str, Array], row: int) -> Payload:
    """The payload that the controller was told of at a sample."""
    tensor = np.zeros((3, 3))
    if "payload_inertia" in columns:
        xx, yy, zz, xy, xz, yz = columns["payload_inertia"][row]
        told = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        # Users may type anything there; a body that cannot be counts as a point.
        tensor = told if np.linalg.eigvalsh(told).min() >= 0 else tensor
    return Payload(float(columns["payload"][row]), np.array(columns["payload_cog"][row]), tensor)
