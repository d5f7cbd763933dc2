"""What all nodes share: parameters from the table, lifecycle with autostart."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock as RosClock
from rclpy.clock import ClockType
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.task import Future

from ur_energy_model.errors import UrEnergyError
from ur_energy_model.nodes.parameters import NODES, Parameter

LIVE = QoSProfile(reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=10)
"""Quality of service of live topics."""
LATCHED = QoSProfile(
    reliability=ReliabilityPolicy.RELIABLE,
    history=HistoryPolicy.KEEP_LAST,
    depth=1,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
"""Quality of service of topics whose last message late joiners get."""


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures and activates itself unless `autostart` is false.

    A node type says in four methods what its states mean: `open` (configure), `start` (activate),
    `stop` (deactivate) and `release` (clean up). Errors of the package that `open` and `start`
    raise are logged as their one line and refuse the transition.

    Args:
        name: node name, also the key of its parameters in the table.
        options: further arguments of rclpy's node.
    """

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._table: dict[str, Parameter] = {entry.name: entry for entry in NODES[name]}
        self._values: dict[str, Any] = {
            entry.name: self.declare_parameter(entry.name, entry.default, descriptor(entry)).value
            for entry in NODES[name]
        }
        self._check_all()
        self.add_on_set_parameters_callback(self._on_parameters)
        self._opened = self._started = False
        self._discard: list[Callable[[], Any]] = []
        self.outcome: Future | None = None
        """Set by `run`; see `finish`."""

    def open(self) -> None:
        """Read parameters, make what the node works with."""

    def start(self) -> None:
        """Begin to work."""

    def stop(self) -> None:
        """Cease to work; `start` may follow."""

    def release(self) -> None:
        """Give back what `open` made."""

    def changed(self, name: str) -> None:
        """A parameter that is not read_only has a new value."""

    def publish_on(self, kind: Any, topic: str, qos: QoSProfile) -> Any:
        """A publisher until the node is cleaned up; it speaks while the node is active."""
        publisher = self.create_lifecycle_publisher(kind, topic, qos)
        self._discard.append(lambda: self.destroy_lifecycle_publisher(publisher))
        return publisher

    def serve(
        self, kind: Any, name: str, callback: Callable[[Any, Any], Any], *, apart: bool = False
    ) -> None:
        """A service until the node is cleaned up.

        Args:
            kind: service type.
            name: service name.
            callback: answers.
            apart: True lets it take long beside the node's other callbacks (`run` with threads).
        """
        group = MutuallyExclusiveCallbackGroup() if apart else None
        service = self.create_service(kind, name, callback, callback_group=group)
        self._discard.append(lambda: self.destroy_service(service))

    def listen(self, kind: Any, topic: str, callback: Callable[[Any], None]) -> None:
        """A subscription of a live topic until the node is cleaned up."""
        subscription = self.create_subscription(kind, topic, callback, LIVE)
        self._discard.append(lambda: self.destroy_subscription(subscription))

    def every(self, period: float, callback: Callable[[], None]) -> None:
        """Call back each `period` [s] of real time while the node is active."""

        def tick() -> None:
            if self._started:
                callback()

        timer = self.create_timer(period, tick, clock=RosClock(clock_type=ClockType.STEADY_TIME))
        self._discard.append(lambda: self.destroy_timer(timer))

    def value(self, name: str) -> Any:
        """Value of a parameter of the table (no call into rcl: cheap in hot paths)."""
        return self._values[name]

    def texts(self, name: str) -> list[str]:
        """A list-of-text parameter without its empty entries (ROS cannot infer an empty list)."""
        return [text for text in self.value(name) if text]

    def begin(self) -> bool:
        """Configure and activate, if `autostart` says so; False where the node refused."""
        return not self.value("autostart") or all(
            trigger() == TransitionCallbackReturn.SUCCESS
            for trigger in (self.trigger_configure, self.trigger_activate)
        )

    def end(self) -> None:
        """Stop and release, whatever the state."""
        if self._started:
            self._started = False
            self.stop()
        if self._opened:
            self._opened = False
            self.release()
        self._discard_all()

    def finish(self, code: int, reason: str = "") -> None:
        """End the process with an exit code, and a reason where it is not 0."""
        if reason:
            self.get_logger().error(reason)
        if self.outcome is not None and not self.outcome.done():
            self.outcome.set_result(code)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: unconfigured to inactive."""

        def configure() -> None:
            self._check_all()
            try:
                self.open()
            except BaseException:
                self._discard_all()
                raise
            self._opened = True

        return self._transition(configure, state, None)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to active."""

        def activate() -> None:
            self.start()
            self._started = True

        return self._transition(activate, state, super().on_activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: active to inactive."""

        def deactivate() -> None:
            self._started = False
            self.stop()

        return self._transition(deactivate, state, super().on_deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to unconfigured."""
        return self._transition(self.end, state, None)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: any state to finalized."""
        return self._transition(self.end, state, None)

    def _transition(
        self,
        action: Callable[[], None],
        state: LifecycleState,
        publishers: Callable[[LifecycleState], TransitionCallbackReturn] | None,
    ) -> TransitionCallbackReturn:
        try:
            # Publishers are switched first, so that a thread that `start` begins may publish.
            result = TransitionCallbackReturn.SUCCESS if publishers is None else publishers(state)
            action()
        except UrEnergyError as error:
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception:
            if self.context.ok():  # else a signal has shut ROS down under the transition
                self.get_logger().error(traceback.format_exc())  # rclpy would swallow it
            return TransitionCallbackReturn.ERROR
        return result

    def _discard_all(self) -> None:
        while self._discard:
            self._discard.pop()()

    def _check_all(self) -> None:
        for name, entry in self._table.items():
            problem = entry.problem(self._values[name])
            if problem is not None:
                raise UrEnergyError(f"{self.get_name()}: {problem}")

    def _on_parameters(self, changes: Sequence[Any]) -> SetParametersResult:
        for change in changes:
            entry = self._table.get(change.name)
            if entry is None:
                continue
            problem = entry.problem(change.value)
            if problem is None and entry.read_only and self._opened:
                problem = f"{change.name} takes effect at configuration; clean up the node first"
            if problem is not None:
                return SetParametersResult(successful=False, reason=problem)
        for change in changes:
            if change.name in self._table:
                self._values[change.name] = change.value
                if self._opened:
                    self.changed(change.name)
        return SetParametersResult(successful=True)


def descriptor(entry: Parameter) -> ParameterDescriptor:
    """ROS descriptor of a parameter of the table.

    Ranges of numbers are left to ROS; what takes effect at configuration only is refused by the
    node while it is configured, so that `read_only` in ROS's sense (never) does not apply.
    """
    text = entry.description + (f" [{entry.unit}]" if entry.unit else "")
    out = ParameterDescriptor(name=entry.name, description=text)
    if entry.choices:
        out.additional_constraints = "one of " + ", ".join(entry.choices)
    if entry.minimum is not None and entry.maximum is not None:
        if isinstance(entry.default, float):
            out.floating_point_range = [
                FloatingPointRange(from_value=float(entry.minimum), to_value=float(entry.maximum))
            ]
        else:
            out.integer_range = [
                IntegerRange(from_value=int(entry.minimum), to_value=int(entry.maximum), step=1)
            ]
    return out
