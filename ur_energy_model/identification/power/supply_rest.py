"""SupplyRest: when the supply may rest because the arm uses energy that it gave back before.

Regenerated energy charges the capacitor of the bus and is used up first; bus power then does not
tell what the arm needs.
"""

from __future__ import annotations

import numpy as np

from ur_energy_model.typing import Array, Mask

_FLOOR_MARGIN = 3.0
"""Expected power below which the supply may rest [W]."""
_DISCHARGE_TIME = 0.3
"""Time in which the surplus energy of the bus capacitor is used up [s]: 10 mF charged to the
voltage at which the braking resistor switches on hold 3 J, a tenth of a second of standby."""


class SupplyRest:
    """Follows the expected power of consecutive samples.

    Attributes:
        last: time at which the supply last may have rested [s]; -inf if it never did.
    """

    def __init__(self) -> None:
        self.last = -np.inf

    def supplied(self, time: Array, expected: Array) -> Mask:
        """Samples at which all power comes from the supply [samples].

        Args:
            time: of the samples; a time before `last` begins another recording [samples], s.
            expected: power by what is known before the fit [samples], W.
        """
        if len(time) and time[0] < self.last:
            self.last = -np.inf
        resting = np.where(expected > _FLOOR_MARGIN, -np.inf, time)
        last = np.maximum.accumulate(np.append(self.last, resting))[1:]
        self.last = float(last[-1]) if len(last) else self.last
        return np.asarray(time - last > _DISCHARGE_TIME)
