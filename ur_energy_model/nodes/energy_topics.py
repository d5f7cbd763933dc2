"""The estimator's publishers, and what each of them says of a snapshot."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from numpy.typing import NDArray
from std_msgs.msg import Float64
from visualization_msgs.msg import MarkerArray

from ur_energy_model.estimation.channels import ArmState, Channels
from ur_energy_model.estimation.cycles import Cycle
from ur_energy_model.estimation.plan import PlanEnergy
from ur_energy_model.estimation.powers import PowerFlow
from ur_energy_model.estimation.snapshot import Snapshot
from ur_energy_model.model.energy import MeterReading, efficiency
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.managed import LATCHED, LIVE
from ur_energy_model.telemetry.modes import ROBOT_MODES, SAFETY_MODES

Array = NDArray[np.float64]

MARKER_PERIOD = 0.1
"""Of energy/markers [s]."""
LISTENER_PERIOD = 0.1
"""How often live topics are looked through for listeners [s]; without any they stay silent."""

Create = Callable[[Any, str, Any], Any]


class EnergyTopics:
    """Publishes the topics below energy/.

    Args:
        create: makes a publisher of (type, relative name, quality of service).
        joints: joint names, prefix included.
        frame: the arm's base frame.
    """

    def __init__(self, create: Create, joints: tuple[str, ...], frame: str) -> None:
        def numbers(name: str) -> tuple[Any, Any]:
            return tuple(create(Float64, f"energy/{name}/{q}", LIVE) for q in ("power", "energy"))

        self._joints = joints
        self._frame = frame
        self._per_joint = [numbers(joint) for joint in joints]
        self._total = numbers("total")
        self._bus = numbers("bus")
        self._standby = create(Float64, "energy/standby/power", LIVE)
        self._residual = create(Float64, "energy/residual/power", LIVE)
        self._summary = create(DiagnosticArray, "energy/summary", LIVE)
        self._cycle = create(DiagnosticArray, "energy/cycle", LATCHED)
        self._prediction = create(DiagnosticArray, "energy/prediction", LATCHED)
        self._markers = create(MarkerArray, "energy/markers", LIVE)
        self._dynamic = convert.DynamicJointStates()
        self._atomic = None
        if self._dynamic.message_type is not None:
            self._atomic = create(self._dynamic.message_type, "energy/joints", LIVE)
        self._message = Float64()
        self._markers_due = self._listeners_due = -np.inf
        self._numeric = [
            *(each for pair in (*self._per_joint, self._total, self._bus) for each in pair),
            self._standby, self._residual,
        ]  # fmt: skip
        self._heard: set[Any] = set()

    def live(self, snapshot: Snapshot, stamp: Time, flow: PowerFlow) -> None:
        """The topics at publish_rate (markers at ten a second)."""
        self._look_for_listeners()
        columns = snapshot.channels
        power, energy = snapshot.power, snapshot.since_reset.net
        electrical = columns.per_joint["electrical_power"]
        pairs = zip(power[electrical].tolist(), energy[electrical].tolist(), strict=True)
        for publishers, values in zip(self._per_joint, pairs, strict=True):
            self._numbers(publishers, *values)
        total, bus = columns.arm["total"], columns.arm["bus"]
        self._numbers(self._total, float(power[total]), float(energy[total]))
        if snapshot.bus_measured:
            self._numbers(self._bus, float(power[bus]), float(energy[bus]))
            self._number(self._residual, float(power[total] - power[bus]))
        self._number(self._standby, snapshot.standby)
        if self._atomic is not None and self._atomic.get_subscription_count():
            self._atomic.publish(self._dynamic.message(stamp, self._interfaces(snapshot)))
        if snapshot.q is not None and abs(snapshot.time - self._markers_due) >= MARKER_PERIOD:
            self._markers_due = snapshot.time
            if not self._markers.get_subscription_count():
                return
            places = flow.dynamics.joint_positions(snapshot.q)
            self._markers.publish(
                convert.power_markers(
                    self._frame, stamp, places, power[electrical], float(power[total])
                )
            )

    def summary(self, snapshot: Snapshot, stamp: Time, model: str) -> None:
        """energy/summary, once a second."""
        self._summary.publish(
            convert.diagnostics(stamp, summary_statuses(snapshot, self._joints, model))
        )

    def cycle(self, cycle: Cycle, channels: Channels, stamp: Time) -> None:
        """energy/cycle, when a cycle has ended."""
        status = convert.status(
            "energy: cycle", convert.OK, f"cycle {cycle.number}",
            {"cycle": cycle.number, **cycle.summary(channels)},
        )  # fmt: skip
        self._cycle.publish(convert.diagnostics(stamp, [status]))

    def prediction(
        self, plan: PlanEnergy, stamp: Time, measured: MeterReading | None, channels: Channels
    ) -> None:
        """energy/prediction: before a planned motion, and with what it took after it."""
        self._prediction.publish(
            convert.diagnostics(stamp, prediction_statuses(plan, self._joints, measured, channels))
        )

    def _numbers(self, publishers: tuple[Any, Any], power: float, energy: float) -> None:
        self._number(publishers[0], power)
        self._number(publishers[1], energy)

    def _number(self, publisher: Any, value: float) -> None:
        if publisher in self._heard:
            self._message.data = value
            publisher.publish(self._message)

    def _look_for_listeners(self) -> None:
        now = time.monotonic()
        if now >= self._listeners_due:
            self._listeners_due = now + LISTENER_PERIOD
            self._heard = {each for each in self._numeric if each.get_subscription_count()}

    def _interfaces(self, snapshot: Snapshot) -> dict[str, dict[str, float]]:
        """Values of energy/joints, by joint (and `total`) and interface name."""
        columns, power = snapshot.channels, snapshot.power
        energy = snapshot.since_reset.net[columns.per_joint["electrical_power"]]
        values = {name: power[part] for name, part in columns.per_joint.items()}
        out = {
            joint: {
                **{name: float(each[i]) for name, each in values.items()},
                "electrical_energy": float(energy[i]),
            }
            for i, joint in enumerate(self._joints)
        }
        out["total"] = {
            **{name: float(each.sum()) for name, each in values.items()},
            "electrical_power": float(power[columns.arm["total"]]),
            "electrical_energy": float(snapshot.since_reset.net[columns.arm["total"]]),
        }
        return out


def summary_statuses(
    snapshot: Snapshot, joints: tuple[str, ...], model: str
) -> list[DiagnosticStatus]:
    """Figures for people: one status per joint, then total, bus, counters and setup."""
    columns, power = snapshot.channels, snapshot.power
    reset, ever = snapshot.since_reset, snapshot.ever
    joint_std, total_std = columns.deviations(reset.net)
    power_std, total_power_std = columns.deviations(power)
    parts = columns.per_joint
    electrical, mechanical = (
        reset.net[parts[name]] for name in ("electrical_power", "mechanical_power")
    )
    ratio = efficiency(mechanical, electrical)
    out = []
    for i, joint in enumerate(joints):
        k = parts["electrical_power"].start + i
        values = {
            "electrical_power_W": power[k],
            "electrical_power_std_W": power_std[i],
            "mechanical_power_W": power[parts["mechanical_power"]][i],
            "copper_loss_W": power[parts["copper_loss"]][i],
            "friction_loss_W": power[parts["friction_loss"]][i],
            "electrical_energy_J": electrical[i],
            "electrical_energy_std_J": joint_std[i],
            "mechanical_energy_J": mechanical[i],
            "copper_loss_J": reset.net[parts["copper_loss"]][i],
            "friction_loss_J": reset.net[parts["friction_loss"]][i],
            "consumed_J": reset.consumed[k],
            "regenerated_J": reset.regenerated[k],
            "consumed_ever_J": ever.consumed[k],
            "efficiency": None if np.isnan(ratio[i]) else ratio[i],
        }
        if snapshot.temperature is not None:
            values["temperature_degC"] = snapshot.temperature[i]
        out.append(convert.status(f"energy: {joint}", convert.OK, f"{power[k]:.1f} W", values))
    arm = columns.arm
    total = {
        "power_W": power[arm["total"]],
        "power_std_W": total_power_std,
        "standby_power_W": snapshot.standby,
        "driver_power_W": power[arm["driver"]],
        "energy_J": reset.net[arm["total"]],
        "energy_std_J": total_std,
        "energy_ever_J": ever.net[arm["total"]],
        "standby_energy_J": reset.net[arm["standby"]],
        "driver_energy_J": reset.net[arm["driver"]],
        "motors_energy_J": electrical.sum(),
        "motors_mechanical_energy_J": mechanical.sum(),
    }
    out.append(convert.status("energy: total", convert.OK, f"{power[arm['total']]:.1f} W", total))
    out.append(_bus_status(snapshot))
    out.append(_state_status(snapshot))
    out.append(
        convert.status("energy: counters", convert.OK, f"since {snapshot.reset_time}", {
            "reset_time": snapshot.reset_time,
            "reset_reason": snapshot.reset_reason,
            "accounted_s": reset.accounted,
            "unaccounted_s": reset.unaccounted,
            "accounted_ever_s": ever.accounted,
            "unaccounted_ever_s": ever.unaccounted,
            "model": model,
        })
    )  # fmt: skip
    return out


def _bus_status(snapshot: Snapshot) -> DiagnosticStatus:
    columns = snapshot.channels.arm
    if not snapshot.bus_measured:
        return convert.status("energy: bus", convert.OK, "not measured by this source", {})
    power, energy = snapshot.power, snapshot.since_reset.net
    measured = energy[columns["bus"]]
    values = {
        "power_W": power[columns["bus"]],
        "energy_J": measured,
        "residual_W": power[columns["total"]] - power[columns["bus"]],
        "residual_mean_W": snapshot.residual_mean,
        "residual_std_W": snapshot.residual_std,
        "residual_energy_J": energy[columns["total"]] - measured,
        "standby_measured_W": snapshot.standby_measured,
        "controller_energy_J": snapshot.controller_energy,
    }
    level = convert.WARN if snapshot.drifting else convert.OK
    text = "the model drifts away from the measured power" if snapshot.drifting else "as modelled"
    return convert.status("energy: bus", level, text, values)


def _state_status(snapshot: Snapshot) -> DiagnosticStatus:
    columns, net = snapshot.channels, snapshot.since_reset.net
    values: dict[str, Any] = {
        "robot_mode": ROBOT_MODES.get(snapshot.robot_mode or 0, snapshot.robot_mode)
        if snapshot.robot_mode is not None else None,
        "safety_mode": SAFETY_MODES.get(snapshot.safety_mode or 0, snapshot.safety_mode)
        if snapshot.safety_mode is not None else None,
        "payload_kg": snapshot.payload,
        "speed_scaling": snapshot.speed_scaling,
    }  # fmt: skip
    for state in ArmState:
        name = state.name.lower()
        values[f"{name}_time_s"] = net[columns.state_time + state]
        values[f"{name}_energy_J"] = net[columns.state_energy + state]
    text = snapshot.state.name.lower().replace("_", " ")
    return convert.status("energy: state", convert.OK, text, values)


def prediction_statuses(
    plan: PlanEnergy, joints: tuple[str, ...], measured: MeterReading | None, channels: Channels
) -> list[DiagnosticStatus]:
    """Predicted energy per joint and in all, beside the measured one where there is one."""
    out = []
    for i, joint in enumerate(joints):
        values: dict[str, Any] = {
            "electrical_energy_J": plan.electrical[i],
            "electrical_energy_std_J": plan.electrical_std[i],
            "mechanical_energy_J": plan.mechanical[i],
        }
        if measured is not None:
            values["measured_electrical_energy_J"] = measured.net[
                channels.per_joint["electrical_power"]
            ][i]
        out.append(
            convert.status(
                f"prediction: {joint}", convert.OK, f"{plan.electrical[i]:.1f} J", values
            )
        )
    total: dict[str, Any] = {
        "energy_J": plan.total,
        "energy_std_J": plan.total_std,
        "duration_s": plan.duration,
        "peak_power_W": plan.peak_power,
    }
    if measured is not None:
        total["measured_energy_J"] = measured.net[channels.arm["total"]]
        total["measured_bus_energy_J"] = measured.net[channels.arm["bus"]]
        total["measured_duration_s"] = measured.accounted + measured.unaccounted
    text = f"{plan.total:.0f} J in {plan.duration:.1f} s"
    out.append(convert.status("prediction: total", convert.OK, text, total))
    return out


def interval(passed: MeterReading, columns: Channels, joints: tuple[str, ...]) -> dict[str, Any]:
    """Energies of an interval, as ~/read_interval answers them (JSON)."""
    part = columns.per_joint["electrical_power"]
    return {
        "accounted_s": passed.accounted,
        "unaccounted_s": passed.unaccounted,
        "total_J": float(passed.net[columns.arm["total"]]),
        "bus_J": float(passed.net[columns.arm["bus"]]),
        "joints": {
            joint: {
                "energy_J": float(passed.net[part][i]),
                "consumed_J": float(passed.consumed[part][i]),
                "regenerated_J": float(passed.regenerated[part][i]),
            }
            for i, joint in enumerate(joints)
        },
    }
