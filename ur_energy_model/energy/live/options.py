"""Options of the live estimator, and the telemetry that it reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ur_energy_model.energy.live.cycles import Trigger
from ur_energy_model.energy.power_options import FIELDS, PowerOptions

LIVE_FIELDS: tuple[str, ...] = (
    "timestamp",
    *FIELDS,
    "actual_robot_energy_consumed",
    "actual_robot_braking_energy_dissipated",
    "runtime_state",
    "actual_digital_output_bits",
    "output_int_register_0",
)
"""RTDE fields that the estimator reads, where the controller has them."""


@dataclass(frozen=True)
class LiveOptions:
    """Options of a LiveEstimator.

    Attributes:
        power: how powers are computed.
        drift_alarm: mean residual of model minus bus power that raises the alarm [W].
        drift_time: time constant of that mean [s].
        cycle_trigger, cycle_output: what starts a cycle, see CycleDetector.
        state_file: file that keeps the counters over restarts; None for none.
        cycle_log: CSV file with a row per cycle; None for none.
        same_arm: see `model_of_arm`.
    """

    power: PowerOptions = field(default_factory=PowerOptions)
    drift_alarm: float = 5.0
    drift_time: float = 60.0
    cycle_trigger: Trigger = "auto"
    cycle_output: int = 0
    state_file: Path | None = None
    cycle_log: Path | None = None
    same_arm: bool = False
