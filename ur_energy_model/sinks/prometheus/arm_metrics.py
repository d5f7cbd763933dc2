"""ArmMetrics: values of all metrics of one arm, from its readings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy_topics.arm_energies import PARTS
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.prometheus import metrics
from ur_energy_model.sinks.prometheus.metrics import Kind, Metric

Values = Mapping[Metric, Mapping[tuple[str, ...], float]]
"""Values by metric and by the values of its labels."""


class ArmMetrics:
    """Keeps what outlives a reading: counters of cycles and losses, and the last cycle."""

    def __init__(self) -> None:
        self._lost = 0
        self._cycles = 0
        self._last_cycle: tuple[float, float] | None = None

    def values(self, reading: ArmReading) -> Values:
        """All values that a reading states; those that are unknown are left out."""
        self._follow(reading)
        snapshot, arm = reading.snapshot, reading.arm
        channels, power, highest = snapshot.channels, snapshot.power, snapshot.highest
        columns, parts = channels.arm, channels.per_joint
        out: dict[Metric, dict[tuple[str, ...], float]] = {}

        def joints(metric: Metric, values: np.ndarray) -> None:
            rows = zip(reading.joints, values.tolist(), strict=True)
            out[metric] = {(arm, joint): value for joint, value in rows}

        def states(metric: Metric, values: Mapping[ArmState, float]) -> None:
            out[metric] = {(arm, state.name.lower()): value for state, value in values.items()}

        joints(metrics.JOINT_POWER, power[parts["electrical_power"]])
        joints(metrics.JOINT_ENERGY, highest[parts["electrical_power"]])
        joints(metrics.JOINT_MECHANICAL_ENERGY, highest[parts["mechanical_power"]])
        if snapshot.temperature is not None:
            joints(metrics.JOINT_TEMPERATURE, snapshot.temperature)
        states(metrics.STATE_POWER, channels.by_state(power, channels.state_energy))
        states(metrics.STATE_ENERGY, channels.by_state(highest, channels.state_energy))
        states(metrics.STATE_TIME, channels.by_state(highest, channels.state_time))
        of_arm: dict[Metric, float] = {
            metrics.TOTAL_POWER: float(power[columns["total"]]),
            metrics.TOTAL_POWER_STD: channels.deviations(power)[1],
            metrics.TOTAL_ENERGY: float(highest[columns["total"]]),
            metrics.STANDBY_POWER: float(power[columns["standby"]]),
            metrics.DRIVERS_POWER: float(power[columns["driver"]]),
            metrics.REGENERATION_POWER: float(power[columns["regeneration"]]),
            metrics.SAMPLES: float(snapshot.samples),
            metrics.SAMPLES_LOST: float(self._lost),
            metrics.CYCLES: float(self._cycles),
            metrics.CONNECTED: 1.0,
        }
        if snapshot.bus_measured:
            of_arm[metrics.BUS_POWER] = float(power[columns["bus"]])
            of_arm[metrics.BUS_ENERGY] = float(highest[columns["bus"]])
            of_arm[metrics.RESIDUAL_POWER] = float(power[columns["total"]] - power[columns["bus"]])
        if self._last_cycle is not None:
            of_arm[metrics.CYCLE_ENERGY], of_arm[metrics.CYCLE_DURATION] = self._last_cycle
        out |= {metric: {(arm,): value} for metric, value in of_arm.items()}
        net = snapshot.lifetime.net
        energies = dict(zip(reading.joints, net[parts["electrical_power"]].tolist(), strict=True))
        energies |= {name: float(net[columns[channel]]) for name, channel in PARTS.items()}
        out[metrics.PART_ENERGY] = {(arm, part): value for part, value in energies.items()}
        robot = "" if reading.robot is None else reading.robot.name
        out[metrics.INFO] = {(arm, robot, reading.model): 1.0}
        return out

    def _follow(self, reading: ArmReading) -> None:
        """Count losses and cycles; an estimate of losses that was too large takes none back."""
        self._lost = max(self._lost, reading.link.lost)
        for cycle in reading.cycles:
            total = cycle.reading.net[reading.snapshot.channels.arm["total"]]
            self._cycles = max(self._cycles, cycle.number)
            self._last_cycle = float(total), cycle.duration


def without_present(values: Values) -> Values:
    """What remains true when no samples arrive: counters, and that they do not arrive."""
    kept = {
        metric: samples
        for metric, samples in values.items()
        if metric.kind is Kind.COUNTER or metric is metrics.INFO
    }
    connected = dict.fromkeys(values[metrics.CONNECTED], 0.0)
    return {**kept, metrics.CONNECTED: connected}


def in_order(values: Values) -> Iterator[tuple[Metric, Mapping[tuple[str, ...], float]]]:
    """Metrics that have values, in the order of the page."""
    for metric in metrics.METRICS:
        if metric in values:
            yield metric, values[metric]
