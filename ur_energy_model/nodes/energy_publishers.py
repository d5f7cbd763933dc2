"""The estimator's publishers, and what each of them says of a snapshot."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import Float64
from visualization_msgs.msg import MarkerArray

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.live.cycles import Cycle
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.prediction import PlanEnergy
from ur_energy_model.nodes import conversions as convert
from ur_energy_model.nodes.energy_statuses import prediction_statuses, summary_statuses
from ur_energy_model.nodes.managed_node import LATCHED, LIVE
from ur_energy_model.nodes.power_markers import PowerMarkers
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.typing import Array

MARKER_RATE = 10.0
"""Of energy/markers [Hz]."""

Create = Callable[[Any, str, Any], Any]
Places = Callable[[Array], Array]


class EnergyPublishers:
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
        self._balls = PowerMarkers(frame, len(joints))
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
        self._markers_due = Decimator(MARKER_RATE)

    def total(self, snapshot: Snapshot) -> None:
        """The whole arm's power and energy: first, for they are waited for most."""
        total = snapshot.channels.arm["total"]
        power, energy = snapshot.power, snapshot.since_reset.net
        self._numbers(self._total, float(power[total]), float(energy[total]))

    def live(self, snapshot: Snapshot, stamp: Time, places: Places) -> None:
        """The other topics at publish_rate (markers at ten a second), where somebody listens.

        Args:
            snapshot: where things stand.
            stamp: of its newest sample.
            places: gives the joints' positions [n, 3], m, at joint angles [n], rad.
        """
        columns = snapshot.channels
        power, energy = snapshot.power, snapshot.since_reset.net
        electrical = columns.per_joint["electrical_power"]
        total, bus = columns.arm["total"], columns.arm["bus"]
        if snapshot.bus_measured:
            self._numbers(self._bus, float(power[bus]), float(energy[bus]))
            self._number(self._residual, float(power[total] - power[bus]))
        pairs = zip(power[electrical].tolist(), energy[electrical].tolist(), strict=True)
        for publishers, values in zip(self._per_joint, pairs, strict=True):
            self._numbers(publishers, *values)
        self._number(self._standby, snapshot.standby)
        if self._atomic is not None and self._atomic.get_subscription_count():
            self._atomic.publish(self._dynamic.message(stamp, self._interfaces(snapshot)))
        if (
            snapshot.q is not None
            and self._markers_due.due(snapshot.time)
            and self._markers.get_subscription_count()
        ):
            balls = self._balls.filled(
                stamp, places(snapshot.q), power[electrical], float(power[total])
            )
            self._markers.publish(balls)

    def summary(self, snapshot: Snapshot, stamp: Time, model: str) -> None:
        """energy/summary, once a second."""
        self._summary.publish(
            convert.diagnostics(stamp, summary_statuses(snapshot, self._joints, model))
        )

    def cycle(self, cycle: Cycle, channels: Channels, stamp: Time) -> None:
        """energy/cycle, when a cycle has ended."""
        status = convert.status(
            "energy: cycle",
            convert.OK,
            f"cycle {cycle.number}",
            {"cycle": cycle.number, **cycle.summary(channels)},
        )
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
        if publisher.get_subscription_count():
            self._message.data = value
            publisher.publish(self._message)

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
