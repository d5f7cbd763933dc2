"""Parts of a recording while it is read: those that the fits will use, in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ur_energy_model.identification.long_recordings.part import Part
from ur_energy_model.identification.long_recordings.part_choice import chosen_parts

TOTAL = 1500.0
"""Time that the fits use of all recordings together, where each one has its share [s]."""
_LEAST, _MOST = 60.0, 300.0
_SAMPLES_SHARE = 0.3


@dataclass(frozen=True)
class KeptTime:
    """Time of a recording that the fits use.

    Attributes:
        motions: for torque constants, friction and presliding [s].
        samples: as recorded, for the bus capacitor and the metrics of the fit [s].
    """

    motions: float
    samples: float

    @classmethod
    def of_each(cls, recordings: int) -> KeptTime:
        """Time of each of some recordings that are fitted together."""
        motions = float(np.clip(TOTAL / max(recordings, 1), _LEAST, _MOST))
        return cls(motions, max(_LEAST, _SAMPLES_SHARE * motions))


class PartPool:
    """Takes the parts of a recording in order and keeps those chosen, at most twice the limit.

    Args:
        limit: time to keep [s].

    Attributes:
        seconds: time that all parts so far cover [s].
    """

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.seconds = 0.0
        self._parts: list[Part] = []

    def add(self, part: Part) -> None:
        """Add the next part."""
        self._parts.append(part)
        self.seconds += part.seconds
        if self.kept > 2 * self.limit:
            self._choose()

    def finished(self) -> Sequence[Part]:
        """The chosen parts in order; the parts as added if they are within the limit."""
        if self.kept > self.limit:
            self._choose()
        return self._parts

    @property
    def kept(self) -> float:
        """Time that the parts kept cover [s]."""
        return sum(part.seconds for part in self._parts)

    def _choose(self) -> None:
        parts = [piece for part in self._parts for piece in part.divided()]
        information = np.array([part.information for part in parts])
        seconds = np.array([part.seconds for part in parts])
        self._parts = [parts[k] for k in chosen_parts(information, seconds, self.limit).tolist()]
