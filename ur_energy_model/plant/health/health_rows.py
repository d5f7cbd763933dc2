"""HealthRows: the history's table `health`, made from powers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ur_energy_model.energy.calculator import EnergyCalculator
from ur_energy_model.energy.power_table import PowerTable
from ur_energy_model.plant.health.health_meter import HealthMeter, HealthRow
from ur_energy_model.plant.history.arrow_columns import arrow_table, lists, same_texts, times
from ur_energy_model.plant.history.part_table import host_times
from ur_energy_model.plant.history.source_keys import SourceKeys
from ur_energy_model.typing import Array

if TYPE_CHECKING:
    import pyarrow

TABLE = "health"


class HealthRows:
    """Makes the rows of `health` as powers arrive; keeps one small row per minute.

    Args:
        calculator: that computes the powers.
    """

    table = TABLE

    def __init__(self, calculator: EnergyCalculator) -> None:
        self._joints = calculator.robot.joint_names
        self._meter = HealthMeter(calculator)
        self._rows: list[HealthRow] = []

    def update(self, powers: PowerTable) -> None:
        """Take powers that follow those of the last call."""
        self._rows += self._meter.observe(
            powers, np.asarray(1e-9 * host_times(powers.samples), dtype=float)
        )

    def complete(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows of the minutes that are over; each is returned once.

        Raises:
            MissingPackageError: pyarrow is not installed.
        """
        rows, self._rows = self._rows, []
        return self._table(rows, keys)

    def rows(self, keys: SourceKeys) -> pyarrow.Table:
        """Rows that were not returned yet; the minute in progress ends with this call.

        Raises:
            MissingPackageError: pyarrow is not installed.
        """
        self._rows += self._meter.finish()
        return self.complete(keys)

    def _table(self, rows: Sequence[HealthRow], keys: SourceKeys) -> pyarrow.Table:
        return health_table(rows, self._meter.reference, self._joints, keys)


def health_table(
    rows: Sequence[HealthRow], reference: Array, joints: Sequence[str], keys: SourceKeys
) -> pyarrow.Table:
    """The table `health` of one source.

    Args:
        rows: any number.
        reference: see `HealthMeter` [n].
        joints: names of the n joints.
        keys: of the source.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """
    n = len(joints)

    def per_joint(name: str) -> Array:
        return np.array([getattr(row, name) for row in rows], dtype=float).reshape(-1, n)

    def whole_arm(name: str) -> Array:
        return np.array([getattr(row, name) for row in rows], dtype=float)

    return arrow_table(
        TABLE,
        {
            "minute": times(np.array([round(1e9 * row.minute) for row in rows], dtype=np.int64)),
            "source": keys.source,
            "robot": keys.robot,
            "model": keys.model,
            "joints": same_texts(joints, len(rows)),
            "joint_moving": lists(per_joint("moving")),
            "joint_temperature": lists(per_joint("temperature")),
            "joint_friction": lists(per_joint("friction")),
            "joint_friction_std": lists(per_joint("friction_std")),
            "joint_friction_reference": lists(np.tile(reference, (len(rows), 1))),
            "joint_torque_constant": lists(per_joint("torque_constant")),
            "joint_torque_constant_std": lists(per_joint("torque_constant_std")),
            "standby": whole_arm("standby"),
            "standby_std": whole_arm("standby_std"),
        },
    )
