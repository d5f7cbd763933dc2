"""Motions of an arm whose rows are needed with several payloads.

Most columns of a row do not depend on the payload. They are computed and filtered once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ur_energy_model.identification.payload.payload_columns import PayloadColumns
from ur_energy_model.identification.regression.filtered_motion import MOVING_SPEED, FilteredMotion
from ur_energy_model.identification.regression.gram_matrices import masked_gram_matrices
from ur_energy_model.identification.regression.narrow_filter import NarrowFilter
from ur_energy_model.typing import Array

_SHORTEST = 3
"""Samples needed for two derivatives."""
_REMEMBERED = 16_000
"""Samples whose rows are kept; a row of all joints has about 4 kB."""


class LoadedMotion:
    """One motion, with the columns that do not depend on the payload.

    Args:
        columns: of the arm, n joints.
        motion: of the arm.
        narrow: filter for all columns alike; None leaves them unfiltered.
        start: time of the recording's first motion [s].

    Attributes:
        temperature: sum over the samples [n], degC.
        samples: number of samples.
        elapsed: time from the recording's first motion to the end of this one [s].
        period: between the samples of the Gram matrices [s].
    """

    def __init__(
        self,
        columns: PayloadColumns,
        motion: FilteredMotion,
        narrow: NarrowFilter | None,
        start: float,
    ) -> None:
        self._columns, self._motion, self._narrow = columns, motion, narrow
        self.samples, self.temperature = len(motion), motion.temperature.sum(axis=0)
        self._inside = slice(0, 0)
        self.period = 0.0
        self.elapsed = float(motion.time[-1]) - start if self.samples else 0.0
        if self.samples < _SHORTEST:
            return
        self._inside = slice(0, self.samples) if narrow is None else narrow.inside(motion)
        self.period = (self._inside.step or 1) * motion.period
        rows, self._links = columns.fixed_rows(motion, start)
        self._flange = rows[:, :, columns.flange].copy()
        if narrow is None:
            self._used = np.abs(motion.qd) > MOVING_SPEED
        else:
            self._used = narrow.moving(motion, MOVING_SPEED)[self._inside]
        self._rows = np.ones((len(self._used), columns.dof, columns.width))
        self._rows[:, :, : columns.one] = self._filtered(rows)

    def gram_matrices(self, payload: Array) -> Iterator[tuple[Array, float]]:
        """Gram matrices [n, width, width] of the moving joints and durations [s], by blocks.

        Args:
            payload: inertial parameters at the flange [10], for load-dependent friction.
        """
        time = self._motion.time[self._inside]
        if not len(time):
            return
        transmitted = self._links + self._flange @ payload
        loaded = self._columns.loaded_columns(self._motion, transmitted)
        self._rows[:, :, self._columns.loaded] = self._filtered(loaded)
        yield from masked_gram_matrices(time, self._rows, self._used)

    def _filtered(self, values: Array) -> Array:
        """Filtered values [samples of the rows, ...] of the motion's samples."""
        if self._narrow is None:
            return np.asarray(values[self._inside])
        flat = values.reshape(len(values), -1)
        out = np.zeros((len(self._used), flat.shape[1]))
        used = flat.any(axis=0)  # inner bodies do not load the joints beyond them
        out[:, used] = self._narrow(self._motion, flat[:, used])[self._inside]
        return out.reshape(len(out), *values.shape[1:])


class LoadedMotions:
    """The motions of one recording, in order, iterated several times.

    Args:
        columns: of the arm.
        motions: of one recording.
        narrow: its filter; None leaves columns unfiltered.
    """

    def __init__(
        self,
        columns: PayloadColumns,
        motions: Iterable[FilteredMotion],
        narrow: NarrowFilter | None,
    ) -> None:
        self._columns, self._motions, self._narrow = columns, motions, narrow
        self._remembered: list[LoadedMotion] = []

    def __iter__(self) -> Iterator[LoadedMotion]:
        known, start = len(self._remembered), 0.0
        for index, motion in enumerate(self._motions):
            if index == 0:
                start = float(motion.time[0])
            if index < known:
                yield self._remembered[index]
                continue
            loaded = LoadedMotion(self._columns, motion, self._narrow, start)
            remembered = sum(each.samples for each in self._remembered)
            if index == len(self._remembered) and remembered + loaded.samples <= _REMEMBERED:
                self._remembered.append(loaded)
            yield loaded
