"""The metrics: name, kind, labels and HELP of each; the collector and dashboards use this table.

Names follow Prometheus' conventions: base units, the unit as suffix, and `_total` for counters.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric may do: a counter never decreases."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: with its unit, and `_total` for counters.
        kind: counter or gauge.
        labels: names of its labels.
        help: what it states, for users.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str


METRICS: list[Metric] = []
"""All metrics, in the order of the page."""
_ARM, _JOINT, _STATE, _PART = ("arm",), ("arm", "joint"), ("arm", "state"), ("arm", "part")
_HIGHEST = (
    "since the state file was made: the highest value so far, so that it never decreases; what is "
    "given back is deducted from later gains"
)


def _counter(name: str, labels: tuple[str, ...], text: str) -> Metric:
    METRICS.append(Metric(f"ur_energy_{name}_total", Kind.COUNTER, labels, text))
    return METRICS[-1]


def _gauge(name: str, labels: tuple[str, ...], text: str) -> Metric:
    METRICS.append(Metric(f"ur_energy_{name}", Kind.GAUGE, labels, text))
    return METRICS[-1]


JOINT_POWER = _gauge("joint_power_watts", _JOINT, "Electrical power of the joint.")
JOINT_ENERGY = _counter(
    "joint_energy_joules", _JOINT, f"Electrical energy of the joint {_HIGHEST}."
)
JOINT_MECHANICAL_ENERGY = _counter(
    "joint_mechanical_energy_joules", _JOINT, f"Mechanical energy of the joint {_HIGHEST}."
)
JOINT_TEMPERATURE = _gauge("joint_temperature_celsius", _JOINT, "Temperature of the joint.")
TOTAL_POWER = _gauge(
    "total_power_watts", _ARM, "Power of the whole arm, standby and drivers included."
)
TOTAL_POWER_STD = _gauge(
    "total_power_std_watts", _ARM, "Standard uncertainty of the power of the whole arm."
)
TOTAL_ENERGY = _counter("total_energy_joules", _ARM, f"Energy of the whole arm {_HIGHEST}.")
BUS_POWER = _gauge("bus_power_watts", _ARM, "Measured bus voltage times current.")
BUS_ENERGY = _counter("bus_energy_joules", _ARM, f"Measured energy of the bus {_HIGHEST}.")
STANDBY_POWER = _gauge("standby_power_watts", _ARM, "Standby power.")
DRIVERS_POWER = _gauge("drivers_power_watts", _ARM, "Power lost in the drivers.")
REGENERATION_POWER = _gauge(
    "regeneration_power_watts",
    _ARM,
    "What the supply cannot take back; joints, standby, drivers and this sum to the total power.",
)
PART_ENERGY = _gauge(
    "part_energy_joules",
    _PART,
    "Energy since the state file was made, what was given back deducted, of each joint, standby, "
    "drivers and regeneration; they sum to ur_energy_total_energy_joules_total.",
)
RESIDUAL_POWER = _gauge("residual_power_watts", _ARM, "Model minus measured bus power.")
STATE_POWER = _gauge(
    "state_power_watts", _STATE, "Power of the whole arm while in this state, 0 in any other."
)
STATE_ENERGY = _counter(
    "state_energy_joules", _STATE, f"Energy of the whole arm in this state {_HIGHEST}."
)
STATE_TIME = _counter("state_seconds", _STATE, "Time in this state since the state file was made.")
CYCLES = _counter("cycles", _ARM, "Cycles completed since the estimator started.")
CYCLE_ENERGY = _gauge("cycle_energy_joules", _ARM, "Energy of the last completed cycle.")
CYCLE_DURATION = _gauge("cycle_duration_seconds", _ARM, "Duration of the last completed cycle.")
SAMPLES = _counter("samples", _ARM, "Samples used since the estimator started.")
SAMPLES_LOST = _counter(
    "samples_lost", _ARM, "Samples of the controller lost since the estimator started."
)
CONNECTED = _gauge("connected", _ARM, "1 while samples of the arm arrive, 0 otherwise.")
INFO = _gauge("info", ("arm", "robot", "model"), "Always 1; the labels describe the arm.")
