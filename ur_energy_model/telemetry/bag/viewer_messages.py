# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""ViewerMessages: messages of a bag at 50 Hz, beside its samples, for people who plot it.

They repeat values of the samples: as joint states, if positions are recorded, and as a
name and a position for every value but the clock. The names are `field/joint` for fields
per joint, and the names of `column_names` for other fields.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.telemetry.bag.cdr import Template
from ur_energy_model.telemetry.bag.mcap_format import MessageBlock
from ur_energy_model.telemetry.bag.messages import (
    JOINT_STATES,
    NAMED_FIELDS,
    joint_state_template,
)
from ur_energy_model.telemetry.fields import FIELDS, column_names
from ur_energy_model.telemetry.samples import Telemetry

PERIOD_NS = 20_000_000  # period of the messages [ns]
_MOTION = ("actual_q", "actual_qd", "actual_current")
"""Position, velocity and effort of joint states, as UR's driver has them."""


class ViewerMessages:
    """Makes the messages for viewers of one bag: the first sample of each period.

    Args:
        fields: RTDE names in the bag.
        joints: names of the joints, prefix included.
    """

    def __init__(self, fields: Sequence[str], joints: Sequence[str]) -> None:
        # By the number of the channel: template, and fields of its values in order.
        self._layouts: dict[int, tuple[Template, Sequence[str]]] = {}
        self._last_period = -1  # number of the last period with messages
        if "actual_q" in fields:
            recorded = [name for name in _MOTION if name in fields]
            n = len(joints)
            speeds = n if "actual_qd" in fields else 0
            currents = n if "actual_current" in fields else 0
            template = joint_state_template(joints, (n, speeds, currents))
            self._layouts[JOINT_STATES] = template, recorded
        named = [name for name in fields if name != "timestamp"]
        titles: list[str] = []
        for name in named:
            if FIELDS[name].per_joint:
                titles += [f"{name}/{joint}" for joint in joints]
            else:
                titles += column_names(FIELDS[name])
        template = joint_state_template(titles, (len(titles), 0, 0))
        self._layouts[NAMED_FIELDS] = template, named

    @property
    def has_joint_states(self) -> bool:
        """Whether there are joint states: positions are recorded."""
        return JOINT_STATES in self._layouts

    def blocks(
        self, samples: Telemetry, stamp: NDArray[np.int64], time: NDArray[np.int64]
    ) -> list[MessageBlock]:
        """Messages for samples that follow those of the last `confirm`.

        Args:
            samples: samples of a chunk [n].
            stamp: host times of the samples [n], ns.
            time: log times of the samples [n], ns.

        Returns:
            Messages of each channel; empty if no period begins in the samples: the last
            messages stand for them.
        """
        periods = stamp // PERIOD_NS
        first = np.flatnonzero(np.diff(periods, prepend=self._last_period) != 0)
        if not len(first):
            return []
        blocks: list[MessageBlock] = []
        for number, (template, names) in self._layouts.items():
            columns = [samples.columns[name][first] for name in names]
            rows = [values.reshape(len(first), -1) for values in columns]
            values = np.hstack([np.empty((len(first), 0)), *rows])
            payload = template.encode(stamp[first], values)
            blocks.append(MessageBlock.of(number, time[first], payload))
        return blocks

    def confirm(self, stamp: NDArray[np.int64]) -> None:
        """Note that the messages of samples with these stamps [n], ns, are written."""
        self._last_period = int(stamp[-1] // PERIOD_NS)
