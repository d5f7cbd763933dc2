"""Base class of the nodes: parameters, lifecycle with autostart, topics, services, diagnostics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.clock import Clock as RosClock
from rclpy.clock import ClockType
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.lifecycle import (
    LifecycleNode,
    LifecyclePublisher,
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter
from rclpy.task import Future
from std_srvs.srv import Trigger

from ur_energy_model.errors import UrEnergyError, printable
from ur_energy_model.nodes.lines import Level, Line
from ur_energy_model.nodes.parameters import NODES, TABLES, NodeParameters
from ur_energy_model.nodes.ros import (
    OVERRIDES,
    PolledSubscription,
    best_effort,
    diagnostic_array,
    latched,
    live,
    log_lines,
)
from ur_energy_model.options import Option, table_of
from ur_energy_model.topics_and_services import DIAGNOSTICS, Service, Topic

# Parameters of a table as those of a node, checked by both.


def descriptor(entry: Option) -> ParameterDescriptor:
    """ROS descriptor of a parameter.

    ROS checks the ranges of numbers. The node itself refuses to change parameters that are not
    changeable while it is configured; `read_only` of ROS would forbid changes in every state. Of
    numbers and switches ROS must accept other types, which `Option.normalized` and `problem` deal
    with.
    """
    text = entry.help + (f" [{entry.unit}]" if entry.unit else "")
    dynamic = entry.is_switch or entry.kind is float
    out = ParameterDescriptor(name=entry.name, description=text, dynamic_typing=dynamic)
    if entry.choices:
        out.additional_constraints = "one of " + ", ".join(entry.choices)
    if entry.address:
        out.additional_constraints = "the address of a host"
    if entry.limits is not None and entry.kind is float:
        low, high = map(float, entry.limits)
        out.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    elif entry.limits is not None:
        least, most = map(int, entry.limits)
        out.integer_range = [IntegerRange(from_value=least, to_value=most, step=1)]
    return out


def declare_parameters(node: Node, entries: Iterable[Option]) -> dict[str, Any]:
    """Declare parameters.

    Args:
        node: that gets them.
        entries: to be declared.

    Returns:
        Their values at the start, by name, as the fields of a table have them.

    Raises:
        UrEnergyError: a value of another type, or one that is not allowed.
    """
    values: dict[str, Any] = {}
    for entry in entries:
        try:
            value = node.declare_parameter(entry.name, entry.parameter, descriptor(entry)).value
        except (InvalidParameterTypeException, InvalidParameterValueException):
            raise UrEnergyError(f"{node.get_name()}: {entry.name} must be {entry.wanted}") from None
        normalized = entry.normalized(value)
        problem = entry.problem(normalized)
        if problem is not None:
            raise UrEnergyError(f"{node.get_name()}: {problem}")
        if normalized is not value:
            node.set_parameters([RosParameter(entry.name, value=normalized)])
        values[entry.name] = entry.typed(normalized)
    return values


# Error messages in the terms of a node: parameters instead of options of the command line.

_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
_COMMAND = re.compile(r"(ur_energy \w+ |identify: )[^;,)']*")


def explain(error: object, node: str) -> str:
    """Text of an error, with options of the command line replaced by parameters of the node.

    What follows the name of a command is left as it is, and so are options without a parameter.

    Args:
        error: an exception or a text.
        node: key of NODES.
    """
    names = {flag: entry.name for entry in NODES[node] for flag in entry.flags}

    def named(match: re.Match[str]) -> str:
        return names.get(match[0], match[0])

    text, out, start = str(error), [], 0
    for command in _COMMAND.finditer(text):
        out += [_OPTION.sub(named, text[start : command.start()]), command[0]]
        start = command.end()
    return "".join([*out, _OPTION.sub(named, text[start:])])


REPORT_PERIOD = 1.0
"""Period of /diagnostics [s]."""


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures and activates itself unless `autostart` is false.

    Subclasses override `open` (configure), `start` (activate), `stop` (deactivate) and `release`
    (clean up). If `open` or `start` raises an error of this package, its line is logged and the
    transition fails.

    Args:
        name: node name, also the key of its parameters in NODES.
        options: further arguments of rclpy's node.

    Attributes:
        parameters: present values, of the node's table.
        outcome: completed by `finish` with the exit code; set by `run_nodes`.
        on_unexpected: called with an unexpected exception and its place; set by `run_nodes`.

    Raises:
        UrEnergyError: a parameter has a value that is not allowed.
    """

    parameters: NodeParameters

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._table: dict[str, Option] = {entry.name: entry for entry in NODES[name]}
        self._values = declare_parameters(self, NODES[name])
        self.parameters = table_of(TABLES[name], self._values)
        if hasattr(self, "add_pre_set_parameters_callback"):  # not in Humble
            self.add_pre_set_parameters_callback(self._as_declared)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._opened = self._started = False
        self._discard: list[Callable[[], object]] = []
        self.outcome: Future | None = None
        self.on_unexpected: Callable[[BaseException, str], object] = lambda error, place: (
            self.get_logger().error(f"{place}: {error!r}")
        )

    @property
    def full_name(self) -> str:
        """Name of the node with its namespace, without the leading slash."""
        return str(self.get_fully_qualified_name().lstrip("/"))

    def open(self) -> None:
        """Read the parameters; make topics, services and what the node works with."""

    def start(self) -> None:
        """Start working."""

    def stop(self) -> None:
        """Stop working; `start` may follow."""

    def release(self) -> None:
        """Release what `open` has made."""

    def on_parameter(self, name: str) -> None:
        """Apply the new value of a parameter that is not read_only."""

    def add_publisher(self, message_type: type, topic: Topic) -> LifecyclePublisher:
        """A publisher that is destroyed at clean-up; it publishes while the node is active."""
        qos = latched() if topic.latched else live()
        publisher: LifecyclePublisher = self.create_lifecycle_publisher(
            message_type, topic.name, qos, qos_overriding_options=OVERRIDES
        )
        self._discard.append(lambda: self.destroy_lifecycle_publisher(publisher))
        return publisher

    def add_service(
        self, service: Service, action: Callable[[], str], *, concurrent: bool = False
    ) -> None:
        """A Trigger service that is destroyed at clean-up.

        Args:
            service: its name.
            action: returns the message of the response. If it raises an error of this package,
                the response has success=False and the text of the error.
            concurrent: True if it takes long and must not block the other callbacks (needs
                `run_nodes` with several threads).
        """

        def respond(request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            try:
                response.message, response.success = action(), True
            except UrEnergyError as error:
                response.message, response.success = self.explain(error), False
            return response

        group = MutuallyExclusiveCallbackGroup() if concurrent else None
        server = self.create_service(Trigger, service.name, respond, callback_group=group)
        self._discard.append(lambda: self.destroy_service(server))

    def add_subscription(
        self, message_type: type, topic: Topic, callback: Callable[..., None], *, raw: bool = False
    ) -> None:
        """A subscription that is destroyed at clean-up; raw ones get serialized messages."""
        subscription = self.create_subscription(
            message_type, topic.name, callback, live(), raw=raw, qos_overriding_options=OVERRIDES
        )
        self._discard.append(lambda: self.destroy_subscription(subscription))

    def add_polled_subscription(
        self, message_type: type, topic: Topic, depth: int
    ) -> PolledSubscription:
        """A subscription whose messages a thread takes; it is destroyed at clean-up."""
        subscription = PolledSubscription(self, message_type, topic.name, best_effort(depth))
        self._discard.append(subscription.destroy)
        return subscription

    def add_report(self, report: Callable[[], None]) -> None:
        """Call `report` every REPORT_PERIOD of real time while the node is active."""

        def tick() -> None:
            if self._started:
                report()

        clock = RosClock(clock_type=ClockType.STEADY_TIME)
        timer = self.create_timer(REPORT_PERIOD, tick, clock=clock)
        self._discard.append(lambda: self.destroy_timer(timer))

    def publish_diagnostics(
        self, statuses: Iterable[DiagnosticStatus], stamp: Time | None = None
    ) -> None:
        """Publish on /diagnostics, stamped with the present time unless a stamp is given."""
        stamp = self.get_clock().now().to_msg() if stamp is None else stamp
        self._diagnostics.publish(diagnostic_array(stamp, statuses))

    def configure(self) -> bool:
        """Lifecycle transition to inactive; False if it failed."""
        return bool(self.trigger_configure() == TransitionCallbackReturn.SUCCESS)

    def activate(self) -> bool:
        """Lifecycle transition to active; False if it failed."""
        return bool(self.trigger_activate() == TransitionCallbackReturn.SUCCESS)

    def begin(self) -> bool:
        """Configure and activate if `autostart` is true; False if a transition failed."""
        return not self.parameters.autostart or (self.configure() and self.activate())

    def end(self) -> None:
        """Stop and release, from any state."""
        if self._started:
            self._started = False
            self.stop()
        if self._opened:
            self._opened = False
            self.release()
        self._discard_all()

    @property
    def active(self) -> bool:
        """Whether the node works."""
        return self._started

    def log_lines(self, lines: Iterable[Line]) -> None:
        """Log lines for the operator."""
        log_lines(self.get_logger(), lines, running=self.context.ok())

    def explain(self, error: UrEnergyError) -> str:
        """Text of an error in the terms of this node's parameters, for terminals."""
        return printable(explain(error, self.get_name()))

    def finish(self, code: int, reason: str = "") -> None:
        """End the process with an exit code, and log the reason if there is one."""
        if reason:
            self.get_logger().error(reason)
        if self.outcome is not None and not self.outcome.done():
            self.outcome.set_result(code)

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: unconfigured to inactive."""

        def configure() -> None:
            lines = (entry.ignored(self.parameters) for entry in self._table.values())
            self.log_lines(Line(Level.WARN, text) for text in lines if text is not None)
            try:
                self._diagnostics = self.add_publisher(DiagnosticArray, DIAGNOSTICS)
                self.open()
            except BaseException:
                self._discard_all()
                raise
            self._opened = True

        return self._transition(configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to active."""

        def activate() -> None:
            # Publishers are switched first, so that a thread that `start` begins may publish.
            super(ManagedNode, self).on_activate(state)
            self.start()
            self._started = True

        return self._transition(activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: active to inactive."""

        def deactivate() -> None:
            super(ManagedNode, self).on_deactivate(state)
            self._started = False
            self.stop()

        return self._transition(deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to unconfigured."""
        return self._transition(self.end)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: any state to finalized."""
        return self._transition(self.end)

    def _transition(self, action: Callable[[], None]) -> TransitionCallbackReturn:
        try:
            action()
        except UrEnergyError as error:
            self.get_logger().error(self.explain(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # rclpy does not log it
            self.on_unexpected(error, f"{self.get_name()}: {action.__name__}")
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    def _discard_all(self) -> None:
        while self._discard:
            self._discard.pop()()

    def _as_declared(self, changes: list[RosParameter]) -> list[RosParameter]:
        """The changes with values of the declared types."""
        return [
            RosParameter(change.name, value=entry.normalized(change.value))
            if (entry := self._table.get(change.name)) is not None and change.value is not None
            else change
            for change in changes
        ]

    def _on_parameters(self, changes: Sequence[RosParameter]) -> SetParametersResult:
        tables = [(self._table.get(change.name), change.value) for change in changes]
        own = [(entry, entry.normalized(value)) for entry, value in tables if entry is not None]
        for entry, value in own:
            problem = entry.problem(value)
            if problem is None and not entry.changeable and self._opened:
                problem = f"{entry.name} takes effect at configuration; clean up the node first"
            if problem is not None:
                return SetParametersResult(successful=False, reason=problem)
        self._values |= {entry.name: entry.typed(value) for entry, value in own}
        self.parameters = table_of(TABLES[self.get_name()], self._values)
        for entry, _ in own if self._opened else ():
            self.on_parameter(entry.name)
        return SetParametersResult(successful=True)
