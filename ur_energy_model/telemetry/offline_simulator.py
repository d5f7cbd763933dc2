"""Recognises recordings of the manufacturer's offline simulator, which measures nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from ur_energy_model.telemetry.channel_statistics import Extremes, Proportion
from ur_energy_model.telemetry.samples import Telemetry

NOMINAL_VOLTAGE = 48.0
"""Constant bus voltage of the offline simulator [V]."""
REASON = (
    "comes from the maker's offline simulator (actual_current is an exact multiple of "
    "target_current, bus voltage exactly 48 V): nothing was measured"
)
"""Why such a recording has no information about energy."""
REMEDY = "record a real arm"
FIELDS = ("actual_current", "target_current", "actual_robot_voltage")
"""Fields that the check reads; it finds nothing in recordings without the first two."""


@dataclass
class OfflineSimulatorCheck:
    """Checks consecutive parts of one recording for the simulator's fingerprint.

    The fingerprint is a measured current that is an exact multiple of the commanded one on every
    joint and, if the bus voltage was recorded, exactly 48 V throughout. One of them alone proves
    nothing: some controllers report whole volts.
    """

    _proportion: Proportion = field(default_factory=Proportion)
    _voltage: Extremes = field(default_factory=Extremes)

    def update(self, part: Telemetry) -> None:
        """Include the next part."""
        if not len(part):
            return
        if "actual_current" in part and "target_current" in part:
            self._proportion.update(part["actual_current"], part["target_current"])
        if "actual_robot_voltage" in part:
            self._voltage.update(part["actual_robot_voltage"].reshape(len(part), 1))

    @property
    def found(self) -> bool:
        """Whether all parts so far have the fingerprint."""
        low, high = self._voltage.low, self._voltage.high
        if low is not None and high is not None and not low[0] == NOMINAL_VOLTAGE == high[0]:
            return False
        return self._proportion.exact
