# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base class of the nodes: parameters, topics and services, reports, lifecycle.

A node is unconfigured, inactive or active. `open` makes its publishers, subscriptions,
services and timers, which are all destroyed at clean-up; `start` and `stop` are called at
activation and deactivation. The module `process` has the program that runs nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
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
from rclpy.logging import get_logger
from rclpy.parameter import Parameter as RosParameter
from rclpy.task import Future
from std_srvs.srv import Trigger

from ur_energy_model.errors import UrEnergyError, printable
from ur_energy_model.nodes.lines import ERROR, INFO, WARN, Level, OperatorLines
from ur_energy_model.nodes.parameters import (
    declared,
    given_of,
    ignored_parameters,
    nodes,
)
from ur_energy_model.nodes.ros import (
    OK,
    Part,
    PolledSubscription,
    diagnostic_array,
    has_subscribers,
    overrides,
    publishing_nodes,
    quality,
    status,
)
from ur_energy_model.nodes.ros import WARN as LEVEL_WARN
from ur_energy_model.options import Option
from ur_energy_model.rooms import use_values
from ur_energy_model.topics_and_services import DIAGNOSTICS, TOPICS, Service, Topic

REPORT_PERIOD = 1.0  # period of /diagnostics [s]


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures and activates itself unless `autostart` is false.

    Subclasses override `open` (configure), `start` (activate) and `stop` (deactivate). If
    `open` or `start` raises an error of this package, its line is logged and the
    transition fails.

    Args:
        name: name of the node, by which `parameters.nodes` finds its tables of
            parameters; ROS may give the node another name.
        options: further arguments of rclpy's node.

    Attributes:
        sole_topic: topic that only one node of a namespace publishes; None for none.
        given: values of the parameters, an object of each table; replaced whenever a
            parameter is set.
        active: whether the node is activated.
        lines: writer of the lines for the operator.
        outcome: outcome of the process, from which its exit code follows; None outside
            `run_nodes`.
        on_unexpected: called with an exception that nothing expects and its place.

    Raises:
        UrEnergyError: a parameter has a value that is not allowed.
    """

    sole_topic: Topic | None = None

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._names = NamesInGraph(self, self.sole_topic)
        self._node = nodes()[name]
        self._table = {entry.name: entry for entry in declared(self._node)}
        self._values = {
            entry.name: self._declared(entry) for entry in self._table.values()
        }
        self.given = given_of(self._node, self._values)
        if hasattr(self, "add_pre_set_parameters_callback"):  # not in Humble
            self.add_pre_set_parameters_callback(self._as_declared)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._opened = False  # whether the node is configured
        self.active = False
        self._discard: list[Callable[[], object]] = []  # actions of the clean-up
        self.lines = OperatorLines(self.log)
        self.outcome: Future | None = None
        self.on_unexpected: Callable[[BaseException, str], object] = self._log_unexpected

    def _log_unexpected(self, error: BaseException, place: str) -> None:
        """Log an exception that nothing expects, outside of `run_nodes`."""
        self.get_logger().error(f"{place}: {error!r}")

    # What subclasses override.

    def open(self) -> None:
        """Read the parameters; make topics, services and all other objects of the node."""

    def start(self) -> None:
        """Start working."""

    def stop(self) -> None:
        """Stop working; `start` may follow."""

    def on_parameter(self, name: str) -> None:
        """Apply the new value of a changeable parameter, which `given` has already."""

    # Publishers, subscriptions and services, which are destroyed at clean-up.

    def on_discard(self, action: Callable[[], object]) -> None:
        """Call an action at clean-up, before the actions of earlier calls."""
        self._discard.append(action)

    def add_publisher(self, message_type: type, topic: Topic) -> LifecyclePublisher:
        """A publisher, which publishes while the node is active.

        Args:
            message_type: class of the ROS messages.
            topic: name and quality of service; the adjustable policies of its quality are
                parameters `qos_overrides.<topic>...`.
        """
        publisher: LifecyclePublisher = self.create_lifecycle_publisher(
            message_type,
            topic.name,
            quality(topic),
            qos_overriding_options=overrides(topic),
        )
        self.on_discard(lambda: self.destroy_lifecycle_publisher(publisher))
        return publisher

    def add_service(
        self, service: Service, action: Callable[[], str], *, concurrent: bool = False
    ) -> None:
        """A Trigger service.

        Args:
            service: name of the service.
            action: returns the text of the response; an error of this package becomes
                success=False and its text.
            concurrent: whether the action takes long and must not block the other
                callbacks (needs `run_nodes` with several threads).
        """

        def respond(
            request: Trigger.Request, response: Trigger.Response
        ) -> Trigger.Response:
            """Answer a request by the action, or with the text of its error."""
            try:
                response.message = action()
                response.success = True
            except UrEnergyError as error:
                response.message = self.words(error)
                response.success = False
            return response

        group = MutuallyExclusiveCallbackGroup() if concurrent else None
        server = self.create_service(Trigger, service.name, respond, callback_group=group)
        self.on_discard(lambda: self.destroy_service(server))

    def add_subscription(
        self,
        message_type: type,
        topic: Topic,
        callback: Callable[..., None],
        *,
        raw: bool = False,
    ) -> None:
        """A subscription.

        Args:
            message_type: class of the ROS messages.
            topic: name and quality of service.
            callback: called with each message in a thread of the executor.
            raw: whether the callback gets serialized messages, as bytes.
        """
        subscription = self.create_subscription(
            message_type,
            topic.name,
            callback,
            quality(topic),
            raw=raw,
            qos_overriding_options=overrides(topic),
        )
        self.on_discard(lambda: self.destroy_subscription(subscription))

    def add_polled_subscription(
        self, message_type: type, topic: Topic
    ) -> PolledSubscription:
        """A subscription whose serialized messages are taken in batches."""
        subscription = PolledSubscription(self, message_type, topic)
        self.on_discard(subscription.destroy)
        return subscription

    def add_report(self, report: Callable[[], None]) -> None:
        """Call `report` every REPORT_PERIOD of real time while the node is active."""

        def tick() -> None:
            """Look for other nodes with the same names, and report."""
            if not self.active:
                return
            level, text, _ = self._names.update()
            problem = None if level == OK else text
            self.lines.problem(
                "graph", problem, "no other node has these names now", WARN
            )
            report()

        clock = RosClock(clock_type=ClockType.STEADY_TIME)
        timer = self.create_timer(REPORT_PERIOD, tick, clock=clock)
        self.on_discard(lambda: self.destroy_timer(timer))

    # Reports.

    def publish_parts(
        self, parts: Mapping[str, Part], hardware: str = "", stamp: Time | None = None
    ) -> None:
        """Publish the parts of the node on /diagnostics, if that is subscribed.

        Args:
            parts: statuses by the name of the part; one about the names of the node in
                the graph is added.
            hardware: serial number or type of the arm.
            stamp: stamp of the message; None for the present time.
        """
        if has_subscribers(self._diagnostics):
            stamp = self.get_clock().now().to_msg() if stamp is None else stamp
            node = self.get_fully_qualified_name().lstrip("/")
            whole = {**parts, "graph": self._names.part}
            statuses = (
                status(f"{node}: {name}", part, hardware) for name, part in whole.items()
            )
            self._diagnostics.publish(diagnostic_array(stamp, statuses))

    def log(self, level: Level, text: str) -> None:
        """Write a line at once: terminal, log file and /rosout.

        Args:
            level: severity of the line.
            text: text of one line; what could control a terminal is escaped.
        """
        logger = self.get_logger()
        # a logger of another name does not try to publish on /rosout
        if not self.context.ok():
            logger = get_logger(f"{logger.name}.end")
        text = printable(text)
        if level is INFO:  # rclpy demands one severity of each place of a call
            logger.info(text)
        elif level is WARN:
            logger.warning(text)
        else:
            logger.error(text)

    def words(self, error: UrEnergyError) -> str:
        """Text of an error, with the names of parameters in place of options."""
        names: dict[str, str] = {}
        for entry in self._table.values():
            names |= dict.fromkeys(entry.flags, entry.name)
        return error.with_names(names)

    def finish(self, code: int, reason: str = "") -> None:
        """End the process, which stops all nodes in it.

        Args:
            code: exit code, 0 if all went well.
            reason: logged as an error, if there is one.
        """
        if reason:
            self.log(ERROR, reason)
        if self.outcome is not None and not self.outcome.done():
            self.outcome.set_result(code)

    # The lifecycle.

    def end(self) -> None:
        """Stop and release, from any state."""
        if self.active:
            self.active = False
            self.stop()
        self._opened = False
        self._discard_all()

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: unconfigured to inactive."""

        def configure() -> None:
            """Open the node; if that fails, release all that was opened."""
            for text in ignored_parameters(self._node, self.given):
                self.log(WARN, text)
            try:
                self._diagnostics = self.add_publisher(DiagnosticArray, DIAGNOSTICS)
                self.open()
            except BaseException:
                self._discard_all()
                raise
            for text in self._overrides_without_effect():
                self.log(WARN, text)
            self._opened = True

        return self._transition(configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to active."""

        def activate() -> None:
            """Start the node."""
            # Publishers are switched first, so that a thread that `start` begins may
            # publish.
            super(ManagedNode, self).on_activate(state)
            self.start()
            self.active = True

        return self._transition(activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: active to inactive."""

        def deactivate() -> None:
            """Stop the node."""
            super(ManagedNode, self).on_deactivate(state)
            self.active = False
            self.stop()

        return self._transition(deactivate)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: inactive to unconfigured."""
        return self._transition(self.end)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: any state to finalized."""
        return self._transition(self.end)

    def _overrides_without_effect(self) -> Iterator[str]:
        """Lines about parameters `qos_overrides.<topic>...` of topics that have none."""
        offered: set[str] = set()
        for topics in TOPICS.values():
            for topic in topics:
                if topic.adjustable:
                    offered.add(self.resolve_topic_name(topic.name))
        named: set[str] = set()
        for name in getattr(self, "_parameter_overrides", {}):  # from files as well
            kind, _, rest = name.partition(".")
            if kind == "qos_overrides":
                named.add(rest.partition(".")[0])
        for unknown in sorted(named - offered):
            yield (
                f"qos_overrides of {unknown} have no effect: that topic has none; "
                f"{', '.join(sorted(offered))} have"
            )

    def _transition(self, action: Callable[[], None]) -> TransitionCallbackReturn:
        """Result of a transition: FAILURE after errors of this package, ERROR after others.

        After FAILURE the node has its former state, and a line has the reason.

        Args:
            action: the transition.
        """
        try:
            action()
        except UrEnergyError as error:
            self.get_logger().error(self.words(error))
            return TransitionCallbackReturn.FAILURE
        except Exception as error:  # rclpy does not log it
            self.on_unexpected(error, f"{self.get_name()}: {action.__name__}")
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    def _discard_all(self) -> None:
        """Destroy what the node works with, in reverse order."""
        while self._discard:
            self._discard.pop()()

    # Parameters.

    def _declared(self, entry: Option) -> Any:
        """Declare a parameter.

        Args:
            entry: option of a table of the node.

        Returns:
            Its first value, with the type of the field of the table.

        Raises:
            UrEnergyError: the user gives a value that is not allowed.
        """
        try:
            value = self.declare_parameter(
                entry.name, entry.parameter, descriptor(entry)
            ).value
        except (InvalidParameterTypeException, InvalidParameterValueException):
            text = f"{self.get_name()}: {entry.name} must be {entry.expected}"
            raise UrEnergyError(text) from None
        normalized = entry.normalized(value)
        problem = entry.problem(normalized)
        if problem is not None:
            raise UrEnergyError(f"{self.get_name()}: {problem}")
        if normalized is not value:
            self.set_parameters([RosParameter(entry.name, value=normalized)])
        typed = entry.typed(normalized)
        try:
            use_values(entry, typed)
        except UrEnergyError as error:
            raise UrEnergyError(f"{self.get_name()}: {entry.name}: {error}") from None
        return typed

    def _as_declared(self, changes: list[RosParameter]) -> list[RosParameter]:
        """The changes with values of the declared types, such as 50.0 for 50."""
        normalized: list[RosParameter] = []
        for change in changes:
            entry = self._table.get(change.name)
            if entry is None or change.value is None:
                normalized.append(change)
            else:
                value = entry.normalized(change.value)
                normalized.append(RosParameter(change.name, value=value))
        return normalized

    def _on_parameters(self, changes: Sequence[RosParameter]) -> SetParametersResult:
        """Take changes, either all or none.

        Args:
            changes: parameters of this node, and of rclpy, which checks its own.

        Returns:
            Success, or the reason for which the first wrong change is refused.
        """
        changed: dict[str, Any] = {}
        for change in changes:
            entry = self._table.get(change.name)
            if entry is None:
                continue
            value = entry.normalized(change.value)
            problem = entry.problem(value)
            if problem is None and entry.used_by:
                problem = f"{entry.name} takes effect at the start of the node only"
            if problem is None and not entry.changeable and self._opened:
                problem = (
                    f"{entry.name} takes effect at configuration; clean up the node first"
                )
            if problem is not None:
                return SetParametersResult(successful=False, reason=problem)
            changed[entry.name] = entry.typed(value)
        self._values |= changed
        self.given = given_of(self._node, self._values)
        if self._opened:
            for name in changed:
                self.on_parameter(name)
        return SetParametersResult(successful=True)


def descriptor(entry: Option) -> ParameterDescriptor:
    """ROS descriptor of a parameter.

    ROS checks the ranges of numbers. The node itself refuses to change parameters that
    are not changeable while it is configured; `read_only` of ROS would forbid changes in
    every state. For numbers and switches ROS must accept values of other types (50 for
    50.0, true for "on"), which `Option.normalized` converts and `Option.problem` refuses.
    """
    text = entry.help
    if entry.unit:
        text += f" [{entry.unit}]"
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


class NamesInGraph:
    """Finds other nodes that have the names of a node, as two arms in one namespace do.

    Such a node has the same name in the same namespace, or publishes a topic that only
    one node of a namespace may publish. A node that has just ended is still in the graph
    for a moment, so that only a node that two updates find is a problem.

    Args:
        node: the node.
        sole_topic: what only one node of a namespace publishes; None for no such topic.

    Attributes:
        part: the status, a warning with the remedy while another node has the names.
    """

    def __init__(self, node: LifecycleNode, sole_topic: Topic | None) -> None:
        self._node = node
        self._topic = sole_topic
        self._suspected = False  # whether the last update found another node
        self.part: Part = (OK, "not known yet", {})

    def update(self) -> Part:
        """Look at the graph; returns the status."""
        problems = self._problems()
        if problems and self._suspected:
            remedy = (
                "give each arm a namespace (a node that was killed still counts for 20 s)"
            )
            self.part = (LEVEL_WARN, f"{'; '.join(problems)}; {remedy}", {})
        elif not problems:
            self.part = (OK, "no other node has this name or its topics", {})
        self._suspected = bool(problems)
        return self.part

    def _problems(self) -> list[str]:
        """Names that other nodes have in common with this node, in words."""
        node = self._node
        own = node.get_fully_qualified_name()
        problems: list[str] = []
        known: list[str] = []
        for name, space in node.get_node_names_and_namespaces():
            known.append(f"{space.rstrip('/')}/{name}")
        if known.count(own) > 1:
            problems.append(f"another node is named {own}, too")
        if self._topic is not None:
            topic = node.resolve_topic_name(self._topic.name)
            others = publishing_nodes(node, topic)
            if own in others:
                others.remove(own)
            if others:
                problems.append(
                    f"{topic} is published by another node, too: {', '.join(others)}"
                )
        return problems
