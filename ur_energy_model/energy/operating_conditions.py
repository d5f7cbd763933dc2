# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Operating conditions that the robot reports: payload, speed scaling, joint temperatures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from ur_energy_model.model.setup import Payload, Setup, tensor_of
from ur_energy_model.telemetry.samples import Telemetry, equal_runs
from ur_energy_model.typing import Array

PAYLOAD: tuple[str, ...] = ("payload", "payload_cog", "payload_inertia")
"""RTDE fields of the payload that is set in the controller."""


class OperatingConditions:
    """The most recent operating conditions.

    Args:
        setup: mounting and payload of the model.

    Attributes:
        setup: mounting of the model, with the payload that is set in the controller once
            it is known.
        speed_scaling: product of speed slider and limiter, 0 to 1.
        temperature: temperatures of the joints [n], degC; None where unknown.
    """

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.speed_scaling = 1.0
        self.temperature: Array | None = None
        self._payload_known = False

    def continue_from(self, earlier: OperatingConditions) -> None:
        """Take over the conditions of another model of the same arm."""
        self.speed_scaling = earlier.speed_scaling
        self.temperature = earlier.temperature
        if earlier._payload_known:
            self.setup = Setup(self.setup.gravity, earlier.setup.payload)
            self._payload_known = True

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
            self._take_payload(columns, -1)

    def parts(self, batch: Telemetry) -> Iterator[tuple[slice, Setup]]:
        """Parts of a batch with one payload each: their rows and setups, in order of time.

        The last setup is kept. Where the payload was not recorded, the setup before holds.
        """
        columns = batch.columns
        if "payload" not in columns or "payload_cog" not in columns:
            yield slice(0, len(batch)), self.setup
            return
        configured = np.column_stack(
            [columns[name] for name in PAYLOAD if name in columns]
        )
        # NaN differs from NaN: rows with an unknown payload must count as equal.
        configured[np.isnan(configured).any(axis=1)] = np.inf
        for rows in equal_runs(configured):
            self._take_payload(columns, rows.start)
            yield rows, self.setup

    def _take_payload(self, columns: Mapping[str, Array], row: int) -> None:
        """Take over the payload that is set in the controller at a sample, if it is known."""
        mass = float(columns["payload"][row])
        center = columns["payload_cog"][row]
        present = self.setup.payload
        same_center = mass == 0.0 or np.array_equal(center, present.center_of_mass)
        if mass == present.mass and same_center:
            return
        inertia = np.zeros(6)
        if "payload_inertia" in columns:
            inertia = columns["payload_inertia"][row]
        if np.isnan([mass, *center, *inertia]).any():
            return
        tensor = np.zeros((3, 3))
        if inertia.any():
            xx, yy, zz, xy, xz, yz = inertia  # the order of RTDE
            entered = tensor_of(np.array([xx, xy, yy, xz, yz, zz]))
            # Users may enter anything; an impossible body counts as a point mass.
            if np.linalg.eigvalsh(entered).min() >= 0:
                tensor = entered
        self.setup = Setup(self.setup.gravity, Payload(mass, np.array(center), tensor))
        self._payload_known = True
