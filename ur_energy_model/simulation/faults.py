# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Fault injection: table of faults, their syntax, and when each is active.

A fault is written `NAME[@T[+D]][:ARGUMENT]`: it starts T seconds after the controller
became ready (default 0) and lasts D seconds (default of the fault; `inf`: until cleared).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.bag.messages import JOINT_NAMES
from ur_energy_model.telemetry.fields import FIELDS


class FaultKind(NamedTuple):
    """A kind of fault.

    Attributes:
        name: name of the kind, as users type it.
        effect: behaviour of the controller while the fault is active, in words.
        argument: meaning of its argument; "" if it has none.
        default: default of the argument.
        duration: default duration [s]; infinite for a fault that lasts until it is
            cleared.
    """

    name: str
    effect: str
    argument: str = ""
    default: str = ""
    duration: float = math.inf


_TABLE = (
    FaultKind("stalled_stream", "data packages stop; connections stay open and answer"),
    FaultKind("closed_socket", "RTDE connections are closed, once", duration=0.0),
    FaultKind("skipped_packets", "data packages are skipped, controller time continues",
              "number of packages", "10", 0.0),
    FaultKind("late_ticks", "the controller pauses and then catches up",
              "pause [ms]", "50", 0.0),
    FaultKind("reordered_connect",
              "a text message arrives before the protocol version, data before the reply to start"),
    FaultKind("refused_start", "start requests are refused"),
    FaultKind("nan_values", "a field becomes NaN", "field", "actual_current"),
    FaultKind("garbage_values", "a field becomes random numbers of any magnitude",
              "field", "actual_current"),
    FaultKind("frozen_encoder", "a joint's measured position and speed stop changing",
              "joint", JOINT_NAMES[0]),
    FaultKind("voltage_dip", "the bus voltage drops", "bus voltage [V]", "30", 0.5),
    FaultKind("wrong_version", "newer RTDE protocol versions are refused",
              "newest version accepted (0: none)", "1"),
    FaultKind("half_open", "connections are accepted, but nothing is answered or sent"),
)  # fmt: skip

FAULTS: dict[str, FaultKind] = {kind.name: kind for kind in _TABLE}  # all faults by name

BOX_FIELDS = (
    "output_",
    "standard_analog",
    "analog_io",
    "actual_digital",
    "io_current",
    "tool_",
)
"""Prefixes of fields of the control box, not of the arm, which no fault replaces."""
LARGEST = {"late_ticks": 1e4}
"""Largest arguments by kind of fault, in the unit of the kind."""
LARGEST_OF_OTHERS = 1e6
"""Largest argument of kinds that LARGEST lacks."""
MOST_FAULTS = 1000  # most pending and active faults
_REAL = ("DOUBLE", "VECTOR3D", "VECTOR6D")
"""RTDE types whose values can be NaN."""
_SPELLING = re.compile(
    r"(?P<name>\w+)(?:@(?P<start>[\d.]+)(?:\+(?P<duration>[\d.]+|inf))?)?(?::(?P<argument>.+))?"
)


class Fault(NamedTuple):
    """A fault of a controller.

    Attributes:
        kind: effect of the fault.
        start: time from the controller being ready to its beginning [s].
        duration: how long it lasts [s]; 0 for an event.
        argument: size of the fault, in the unit of its kind.
    """

    kind: FaultKind
    start: float
    duration: float
    argument: str

    @property
    def number(self) -> float:
        """The argument as a number."""
        return float(self.argument)

    def __str__(self) -> str:
        argument = f":{self.argument}" if self.argument else ""
        return f"{self.kind.name}@{self.start:g}+{self.duration:g}{argument}"


def parse_fault(text: str, now: float = 0.0) -> Fault:
    """Parse a fault.

    Args:
        text: fault as users type it: `NAME[@T[+D]][:ARGUMENT]`.
        now: time that T is relative to [s].

    Returns:
        The fault, with the default argument and duration of its kind where none is given.

    Raises:
        InputError: unknown name or invalid argument.
    """
    match = _SPELLING.fullmatch(text.strip())
    kind = FAULTS.get(match["name"]) if match else None
    if match is None or kind is None:
        remedy = f"write NAME[@T[+D]][:ARGUMENT] with NAME one of {', '.join(FAULTS)}"
        raise InputError(f"fault {text!r}", "is unknown or malformed", remedy)
    argument = match["argument"] or kind.default
    if kind.argument == "joint" and argument in list("012345"):  # as up to version 0.1
        argument = JOINT_NAMES[int(argument)]
    if argument and not kind.argument:
        raise InputError(f"fault {text!r}", "takes no argument", f"write {kind.name}")
    if not _usable(kind, argument):
        problem = f"has argument {argument!r}, expected: {kind.argument}"
        remedy = f"for example, write {kind.name}:{kind.default}"
        raise InputError(f"fault {text!r}", problem, remedy)
    try:
        start = float(match["start"] or 0.0)
        duration = kind.duration
        if match["duration"] is not None:
            duration = float(match["duration"])
    except ValueError:
        remedy = "write seconds, for example voltage_dip@10+0.5:30"
        raise InputError(f"fault {text!r}", "has an invalid time", remedy) from None
    return Fault(kind, now + start, duration, argument)


def _usable(kind: FaultKind, argument: str) -> bool:
    """Whether a kind of fault can have this argument."""
    if kind.argument == "field":
        real = argument in FIELDS and FIELDS[argument].kind in _REAL
        return real and not argument.startswith(BOX_FIELDS)
    if kind.argument == "joint":
        return argument in JOINT_NAMES
    if not kind.argument:
        return True
    try:
        return 0 <= float(argument) <= LARGEST.get(kind.name, LARGEST_OF_OTHERS)
    except ValueError:
        return False


@dataclass
class Faults:
    """Requested faults of one controller, pending and active.

    Attributes:
        faults: all faults that are to happen or are active.
        now: time since the controller became ready [s], which the server updates every
            tick.
    """

    faults: list[Fault] = field(default_factory=list)
    now: float = 0.0
    # Position at which each frozen encoder was held first [rad].
    _held: dict[Fault, float] = field(default_factory=dict)
    _random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    @classmethod
    def parse(cls, texts: Iterable[str]) -> Faults:
        """Parse several faults.

        Args:
            texts: one fault each, see `parse_fault`.

        Raises:
            InputError: see `parse_fault`.
        """
        return cls([parse_fault(text) for text in texts])

    def inject(self, text: str) -> Fault:
        """Request a fault at run time.

        Args:
            text: see `parse_fault`; the start of the fault is relative to now.

        Returns:
            The fault, with its start since the controller became ready.

        Raises:
            InputError: see `parse_fault`; or too many faults.
        """
        fault = parse_fault(text, self.now)
        if len(self.faults) >= MOST_FAULTS:
            raise InputError(
                f"fault {text!r}", f"would be one of over {MOST_FAULTS}", "clear some"
            )
        self.faults.append(fault)
        return fault

    def clear(self, name: str | None = None) -> int:
        """Remove faults.

        Args:
            name: name of the kind of faults to remove; None for all kinds.

        Returns:
            The number of faults removed.
        """
        before = len(self.faults)
        if name is None:
            self.faults = []
        else:
            self.faults = [fault for fault in self.faults if fault.kind.name != name]
        self._held.clear()
        return before - len(self.faults)

    def active(self, name: str) -> Fault | None:
        """The active fault of this name, or None.

        Args:
            name: name of the kind.
        """
        for fault in self.faults:
            end = fault.start + fault.duration
            if fault.kind.name == name and fault.start <= self.now < end:
                return fault
        return None

    def take_due(self, name: str) -> Fault | None:
        """Remove and return a due fault of this name (single events), or None.

        Args:
            name: name of a kind of faults that happen once.
        """
        for fault in self.faults:
            if fault.kind.name == name and fault.start <= self.now:
                self.faults.remove(fault)
                return fault
        return None

    def replaced_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values that active faults replace, from the values of the current cycle.

        Args:
            values: values of the current cycle by RTDE field.

        Returns:
            The fields that are replaced, with their faulty values.
        """
        replaced: dict[str, Any] = {}
        if fault := self.active("nan_values"):
            replaced[fault.argument] = np.full(np.shape(values[fault.argument]), np.nan)
        if fault := self.active("garbage_values"):
            shape = np.shape(values[fault.argument])
            # Almost the whole range of double precision.
            magnitude = 10.0 ** self._random.uniform(-300, 300, shape)
            replaced[fault.argument] = magnitude * self._random.choice((-1.0, 1.0), shape)
        if fault := self.active("voltage_dip"):
            replaced["actual_robot_voltage"] = fault.number
        if fault := self.active("frozen_encoder"):
            joint = JOINT_NAMES.index(fault.argument)
            held = self._held.setdefault(fault, float(values["actual_q"][joint]))
            replaced["actual_q"] = np.array(values["actual_q"])
            replaced["actual_qd"] = np.array(values["actual_qd"])
            replaced["actual_q"][joint] = held
            replaced["actual_qd"][joint] = 0.0
        return replaced
