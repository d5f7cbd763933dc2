# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Base class of the nodes, with parameters and lifecycle, and the process that runs nodes.

SIGINT never raises an exception in such a process: the handler of rclpy shuts ROS down
and wakes the executor, and then calls ours, which only sets a flag. Repeated Ctrl-C does
not interrupt the clean-up.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import rclpy
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
from rclpy.executors import (
    ExternalShutdownException,
    MultiThreadedExecutor,
    SingleThreadedExecutor,
)
from rclpy.lifecycle import (
    LifecycleNode,
    LifecyclePublisher,
    LifecycleState,
    TransitionCallbackReturn,
)
from rclpy.logging import get_logger, get_logging_directory
from rclpy.parameter import Parameter as RosParameter
from rclpy.task import Future
from std_srvs.srv import Trigger

from ur_energy_model import interrupts
from ur_energy_model.errors import UrEnergyError, one_line, printable
from ur_energy_model.nodes.lines import ERROR, INFO, WARN, Level, OperatorLines
from ur_energy_model.nodes.memory import give_back_memory
from ur_energy_model.nodes.parameters import (
    NodeParameters,
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
from ur_energy_model.topics_and_services import DIAGNOSTICS, TOPICS, Service, Topic


def descriptor(entry: Option) -> ParameterDescriptor:
    """ROS descriptor of a parameter.

    ROS checks the ranges of numbers. The node itself refuses to change parameters that
    are not changeable while it is configured; `read_only` of ROS would forbid changes in
    every state. Of numbers and switches ROS must accept other types, which
    `Option.normalized` and `problem` deal with.
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


REPORT_PERIOD = 1.0  # period of /diagnostics [s]


class ManagedNode(LifecycleNode):
    """A lifecycle node that configures and activates itself unless `autostart` is false.

    Subclasses override `open` (configure), `start` (activate) and `stop` (deactivate). If
    `open` or `start` raises an error of this package, its line is logged and the
    transition fails.

    Args:
        name: node name, also the key of its parameters in NODES.
        options: further arguments of rclpy's node.

    Raises:
        UrEnergyError: a parameter has a value that is not allowed.
    """

    sole_topic: Topic | None = None
    """Published by one node of a namespace only."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._names: Part = (OK, "not known yet", {})
        self._suspected = False  # whether another node had its names at the last look
        self._node = nodes()[name]
        self._table = {entry.name: entry for entry in declared(self._node)}
        self._values = {
            entry.name: self._declared(entry) for entry in self._table.values()
        }
        self.given = given_of(self._node, self._values)
        if hasattr(self, "add_pre_set_parameters_callback"):  # not in Humble
            self.add_pre_set_parameters_callback(self._as_declared)
        self.add_on_set_parameters_callback(self._on_parameters)
        self._opened = self.active = False
        self._discard: list[Callable[[], object]] = []
        self.lines = OperatorLines(self.log)
        self.outcome: Future | None = None
        self.on_unexpected: Callable[[BaseException, str], object] = lambda error, place: (
            self.get_logger().error(f"{place}: {error!r}")
        )

    def open(self) -> None:
        """Read the parameters; make topics, services and what the node works with."""

    def start(self) -> None:
        """Start working."""

    def stop(self) -> None:
        """Stop working; `start` may follow."""

    def on_parameter(self, name: str) -> None:
        """Apply the new value of a parameter that is not read_only."""

    def on_discard(self, action: Callable[[], object]) -> None:
        """Call this at clean-up, before what was given earlier."""
        self._discard.append(action)

    # What a node works with; all of it is destroyed at clean-up.

    def add_publisher(self, message_type: type, topic: Topic) -> LifecyclePublisher:
        """A publisher, which publishes while the node is active."""
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
        """A Trigger service that responds with what `action` returns.

        An error of this package becomes success=False and its text. A `concurrent` one
        takes long and must not block the other callbacks (needs `run_nodes` with several
        threads).
        """

        def respond(
            request: Trigger.Request, response: Trigger.Response
        ) -> Trigger.Response:
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
        """A subscription; raw ones get serialized messages."""
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
        """A subscription whose messages a thread takes."""
        subscription = PolledSubscription(self, message_type, topic)
        self.on_discard(subscription.destroy)
        return subscription

    def add_report(self, report: Callable[[], None]) -> None:
        """Call `report` every REPORT_PERIOD of real time while the node is active."""

        def tick() -> None:
            if self.active:
                found = self._graph()
                # A node that has just ended is still in the graph for a moment: twice
                # counts.
                if found[0] == OK or self._suspected:
                    self._names = found
                self._suspected = found[0] != OK
                level, text, _ = self._names
                problem = None if level == OK else text
                self.lines.problem(
                    "graph", problem, "no other node has these names now", WARN
                )
                report()

        clock = RosClock(clock_type=ClockType.STEADY_TIME)
        timer = self.create_timer(REPORT_PERIOD, tick, clock=clock)
        self.on_discard(lambda: self.destroy_timer(timer))

    def _graph(self) -> Part:
        """Status of the node's names in the graph: a warning if another node has them, too.

        That is one of the same name in the same namespace, or one that publishes
        `sole_topic`.
        """
        topic = self.sole_topic
        own = self.get_fully_qualified_name()
        problems = list[str]()
        known = [
            f"{n[1].rstrip('/')}/{n[0]}" for n in self.get_node_names_and_namespaces()
        ]
        if known.count(own) > 1:
            problems.append(f"another node is named {own}, too")
        if topic is not None:
            name = self.resolve_topic_name(topic.name)
            others = publishing_nodes(self, name)
            if own in others:
                others.remove(own)
            if others:
                problems.append(
                    f"{name} is published by another node, too: {', '.join(others)}"
                )
        if not problems:
            return OK, "no other node has this name or its topics", {}
        remedy = (
            "give each arm a namespace (a node that was killed still counts for 20 s)"
        )
        return LEVEL_WARN, f"{'; '.join(problems)}; {remedy}", {}

    def publish_parts(
        self, parts: Mapping[str, Part], hardware: str = "", stamp: Time | None = None
    ) -> None:
        """Publish the parts of the node, by name, on /diagnostics if it is subscribed.

        One more is about its names in the graph. The stamp is None for the present time.
        """
        if has_subscribers(self._diagnostics):
            stamp = self.get_clock().now().to_msg() if stamp is None else stamp
            node = self.get_fully_qualified_name().lstrip("/")
            whole = {**parts, "graph": self._names}
            statuses = (
                status(f"{node}: {name}", part, hardware) for name, part in whole.items()
            )
            self._diagnostics.publish(diagnostic_array(stamp, statuses))

    def log(self, level: Level, text: str) -> None:
        """Write a line at once: terminal, log file and /rosout."""
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
        """Text of an error; the options that it carries are named as this node's parameters."""
        names = {
            flag: entry.name for entry in self._table.values() for flag in entry.flags
        }
        return error.with_names(names)

    def finish(self, code: int, reason: str = "") -> None:
        """End the process with an exit code, and log the reason if there is one."""
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
            # Publishers are switched first, so that a thread that `start` begins may
            # publish.
            super(ManagedNode, self).on_activate(state)
            self.start()
            self.active = True

        return self._transition(activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Lifecycle: active to inactive."""

        def deactivate() -> None:
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
        """Lines about given qualities of service of topics that no node offers for it."""
        offered = {
            self.resolve_topic_name(topic.name)
            for topics in TOPICS.values()
            for topic in topics
            if topic.adjustable
        }
        # rclpy keeps those of files, too
        given = getattr(self, "_parameter_overrides", {})
        named = {
            each.split(".")[1] for each in given if each.startswith("qos_overrides.")
        }
        for topic in sorted(named - offered):
            yield (
                f"qos_overrides of {topic} have no effect: that topic has none; "
                f"{', '.join(sorted(offered))} have"
            )

    def _transition(self, action: Callable[[], None]) -> TransitionCallbackReturn:
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
        while self._discard:
            self._discard.pop()()

    # Parameters.

    def _declared(self, entry: Option) -> Any:
        """Declare a parameter; returns its first value, as the field of the table has it."""
        try:
            value = self.declare_parameter(
                entry.name, entry.parameter, descriptor(entry)
            ).value
        except (InvalidParameterTypeException, InvalidParameterValueException):
            text = f"{self.get_name()}: {entry.name} must be {entry.wanted}"
            raise UrEnergyError(text) from None
        normalized = entry.normalized(value)
        if (problem := entry.problem(normalized)) is not None:
            raise UrEnergyError(f"{self.get_name()}: {problem}")
        if normalized is not value:
            self.set_parameters([RosParameter(entry.name, value=normalized)])
        return entry.typed(normalized)

    def _as_declared(self, changes: list[RosParameter]) -> list[RosParameter]:
        """The changes with values of the declared types."""
        return [
            RosParameter(change.name, value=entry.normalized(change.value))
            if (entry := self._table.get(change.name)) is not None
            and change.value is not None
            else change
            for change in changes
        ]

    def _on_parameters(self, changes: Sequence[RosParameter]) -> SetParametersResult:
        tables = [(self._table.get(change.name), change.value) for change in changes]
        own = [
            (entry, entry.normalized(value))
            for entry, value in tables
            if entry is not None
        ]
        for entry, value in own:
            problem = entry.problem(value)
            if problem is None and not entry.changeable and self._opened:
                problem = (
                    f"{entry.name} takes effect at configuration; clean up the node first"
                )
            if problem is not None:
                return SetParametersResult(successful=False, reason=problem)
        self._values |= {entry.name: entry.typed(value) for entry, value in own}
        self.given = given_of(self._node, self._values)
        for entry, _ in own if self._opened else ():
            self.on_parameter(entry.name)
        return SetParametersResult(successful=True)


def begin(nodes: Iterable[ManagedNode]) -> bool:
    """Configure all nodes before the first one is activated; False if a transition failed.

    A node that is active may pass samples to others. Nodes whose `autostart` is false are
    left to their lifecycle manager.
    """
    own = [node for node in nodes if node.given.of(NodeParameters).autostart]
    success = TransitionCallbackReturn.SUCCESS
    return all(node.trigger_configure() == success for node in own) and all(
        node.trigger_activate() == success for node in own
    )


# The process: from its start to a clean shutdown.

EXIT_CODE = 1
# longest time that a process with an unexpected error takes to end [s]
END_TIMEOUT = 30.0
SHUTDOWN_TIMEOUT = 5.0  # longest wait for running callbacks [s]


def run_nodes(make: Callable[[], Sequence[ManagedNode]], *, threads: int = 1) -> int:
    """Run the nodes that `make` makes, in one process, until SIGINT, SIGTERM or SIGHUP.

    The process ignores these afterwards. `threads` run the callbacks.

    Returns:
        Exit code: 0 after a signal, 1 if a node failed to start, or the code of a node's
        `finish`.
    """
    # Before rclpy's handler, which calls this one. Without a lock, as in an Event: the
    # next SIGINT can interrupt the handler while it holds the lock, and would wait for
    # ever.
    signals: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: signals.append(number))
    interrupts.forward(signal.SIGHUP, signal.SIGTERM)  # of which rclpy knows nothing
    # A signal that shuts ROS down while a node is made leaves rclpy with half of one.
    warnings.filterwarnings("ignore", "Failed to fini", RuntimeWarning)
    give_back_memory()
    try:
        rclpy.init()
    except RuntimeError as error:  # arguments that ROS cannot parse
        get_logger(Path(sys.argv[0]).name).error(
            one_line(f"ROS cannot be started: {error}")
        )
        return EXIT_CODE
    outcome = Future()
    errors = UnexpectedErrors(outcome)
    outside = threading.excepthook
    threading.excepthook = errors.of_thread
    try:
        if signals:  # before rclpy had its handler
            return 0
        code = _run(make, threads, outcome, errors)
        return EXIT_CODE if errors.logged else code
    finally:
        threading.excepthook = outside
        errors.over.set()
        rclpy.try_shutdown()
        interrupts.ignore()


class UnexpectedErrors:
    """Takes the exceptions that nothing in this package expects, from any thread.

    The first one is logged as one line and ends the process; all tracebacks go into a
    file. After a signal has shut ROS down, only those of the clean-up are logged: what
    else fails then fails because of the shutdown. `over` is set once the process is about
    to end by itself.
    """

    def __init__(self, outcome: Future) -> None:
        self._outcome = outcome
        self._lock = threading.Lock()
        self.logged = False
        self.over = threading.Event()

    def report(self, error: BaseException, place: str) -> None:
        """Log the error if it is the first, keep its traceback, and end the process.

        `place` is where it was raised, such as "thread 'telemetry reader'".
        """

        def force() -> None:
            if not self.over.wait(END_TIMEOUT):
                os._exit(EXIT_CODE)

        if rclpy.ok() and self.log(error, place, "; the process ends"):
            threading.Thread(target=force, name="forced end", daemon=True).start()
            if not self._outcome.done():
                self._outcome.set_result(EXIT_CODE)

    def of_thread(self, arguments: threading.ExceptHookArgs) -> None:
        """Report the exception that ended a thread (threading.excepthook)."""
        error = arguments.exc_value
        thread = arguments.thread
        if error is not None and not isinstance(error, SystemExit):
            self.report(error, f"thread {'unknown' if thread is None else thread.name!r}")

    def log(self, error: BaseException, place: str, consequence: str = "") -> bool:
        """Log the error if it is the first, and keep its traceback; returns whether it was."""
        program = Path(sys.argv[0]).stem or "node"
        details = ""
        text = "".join(traceback.format_exception(error))
        logger = get_logger(program)
        logger.debug(text)
        with suppress(OSError, RuntimeError):
            path = Path(get_logging_directory()) / f"{program}_{os.getpid()}_errors.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8", errors="replace") as out:
                out.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {place}\n{text}\n")
            details = f"; details in {path}"
        with self._lock:
            first = not self.logged
            self.logged = True
        if first:
            words = printable(" ".join(f"{type(error).__name__}: {error}".split())[:500])
            logger.fatal(f"unexpected error in {place}: {words}{consequence}{details}")
        return first


def _run(
    make: Callable[[], Sequence[ManagedNode]],
    threads: int,
    outcome: Future,
    errors: UnexpectedErrors,
) -> int:
    nodes: Sequence[ManagedNode] = ()
    place = "the start"
    executor = (
        SingleThreadedExecutor() if threads == 1 else MultiThreadedExecutor(threads)
    )
    try:
        nodes = make()
        for node in nodes:
            node.outcome = outcome
            node.on_unexpected = errors.report
            executor.add_node(node)
        if not begin(nodes):
            return EXIT_CODE if rclpy.ok() else 0
        place = "a callback"
        executor.spin_until_future_complete(outcome)
        if outcome.done():
            return int(outcome.result())
    except ExternalShutdownException:
        pass
    except UrEnergyError as error:  # of a parameter: "estimator: robot_ip must be ..."
        name, _, text = str(error).partition(": ")
        get_logger(name).error(text)
        return EXIT_CODE
    except Exception as error:
        if rclpy.ok():  # otherwise a signal has shut ROS down during a callback
            errors.report(error, place)
            return EXIT_CODE
    finally:
        executor.shutdown(timeout_sec=SHUTDOWN_TIMEOUT)
        for node in nodes:
            try:
                node.end()
                node.destroy_node()
            except Exception as error:  # noqa: PERF203  the clean-up continues
                errors.log(error, f"the end of {node.get_name()}")
    return 0
