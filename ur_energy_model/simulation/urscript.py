# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""URScript programs of plain calls: text into programs, programs into calls, calls into actions.

There is no URScript interpreter. A program is simulated if every line is a call with
literal arguments, or a call of a function that the program defines without parameters;
calls may be in endless loops. Other programs are refused with a message.
"""

from __future__ import annotations

import ast
import codecs
import math
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ur_energy_model.simulation import arm_commands as cmd
from ur_energy_model.simulation.control_box import ControlBox
from ur_energy_model.trajectory.kinematics import ScriptError
from ur_energy_model.typing import Array

MAX_PROGRAM = 1 << 20  # longest program [characters]; longer ones are dropped
_HEADER = re.compile(r"(?:def|sec)\s+(\w+)\s*\(")
_NAME = re.compile(r"\s*([A-Za-z_]\w{0,63})\s*(?:\(|$)", re.ASCII)


class ScriptReader:
    """Splits a stream of script text into programs.

    A program is `def name():` ... `end`, both at the start of a line, or a single line.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._program: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[str]:
        """Append received bytes.

        Args:
            data: the next bytes of the connection.

        Returns:
            The programs that these bytes complete.
        """
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        programs = []
        for received in lines:
            line = received.removesuffix("\r")
            inside = bool(self._program)
            self._program.append(line)
            self._size += len(line) + 1
            is_end = re.fullmatch(r"end\s*", line) is not None
            goes_on = not is_end if inside else _HEADER.match(line) is not None
            if goes_on:
                continue
            program = "\n".join(self._program)
            self._program = []
            self._size = 0
            if program.strip():
                programs.append(program)
        if self._size + len(self._rest) > MAX_PROGRAM:
            self._rest = ""
            self._program = []
            self._size = 0
        return programs


def program_name(program: str) -> str:
    """Name of a program; for a single line the name of its function, if it has one.

    Args:
        program: text of the program.
    """
    match = _HEADER.match(program) or _NAME.match(program)
    return match[1][:64] if match else "a script"


# The calls of a program. Calls with literal arguments are expressions of Python too (a
# pose p[...] is a subscript), so Python's own parser, which is bounded, reads them.

MAX_LINE = 10_000  # longest line of a plain program [characters]
MAX_CALLS = 5000  # most lines of a plain program
_DIGITAL_OUT = re.compile(r"digital_out\[(\d+)\]\s*=\s*(True|False)", re.ASCII)


class Pose(tuple[float, ...]):
    """A pose p[x, y, z, rx, ry, rz]: position in m, rotation vector in rad."""

    __slots__ = ()


@dataclass(frozen=True)
class ScriptCall:
    """A plain call with literal arguments, such as `movej([0, 0, 0, 0, 0, 0], a=1.2)`.

    Attributes:
        name: name of the function.
        positional: arguments without a name.
        named: arguments by name.
        line: line of the program, from 1.
    """

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    line: int = field(default=0, compare=False)


_LOOP = re.compile(r"while\s*(\(\s*True\s*\)|True\b)\s*:")
_DEFINE = re.compile(r"def\s+(\w+)\(\)\s*:")
# Names of the calls that stand for loops and functions; no script can have such names.
GO_TO = "go to"
CALL = "call"
RETURN = "return"
MOST_NESTED = 100  # calls within calls
MOST_SHOWN = 80  # characters of a refused line that its message shows


def calls_of(program: str) -> list[ScriptCall]:
    """Calls of a program that can be simulated.

    Args:
        program: text of the program.

    Returns:
        The calls in their order; loops and functions are calls of GO_TO and CALL, with a
        place in this list, and RETURN.

    Raises:
        ScriptError: more than `MAX_CALLS` lines, or one that is neither a plain call nor
            the begin or end of an endless loop or of a function; its number and text are
            in the message.
    """
    lines = program.split("\n")
    first = 1
    if _HEADER.match(lines[0]):
        lines = lines[1:-1]
        first = 2
    if len(lines) > MAX_CALLS:
        raise ScriptError(
            f"the script has {len(lines)} lines; at most {MAX_CALLS} are simulated"
        )
    parser = _Parser()
    for number, line in enumerate(lines, first):
        parser.take(number, line)
    if parser.blocks:
        end = first + len(lines)
        raise ScriptError(f"line {end}: the end of a loop or function is missing")
    return parser.resolved()


@dataclass
class _Parser:
    """Calls, loops and functions in the lines of a program so far.

    Attributes:
        calls: calls in the order of the lines.
        blocks: loops and functions around the present line, the innermost last: the name
            of a function, empty for a loop, and the place of its first call.
        functions: place of the first call in each function, by name.
    """

    calls: list[ScriptCall] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)
    functions: dict[str, int] = field(default_factory=dict)

    def take(self, number: int, line: str) -> None:
        """Take the next line.

        Args:
            number: number of the line, from 1.
            line: text of the line.

        Raises:
            ScriptError: the line is not plain.
        """
        code = line.split("#", 1)[0].strip()
        if not code or code.startswith("$"):  # a node of the program tree
            return
        calls = self.calls
        if _LOOP.fullmatch(code):
            self.blocks.append(("", len(calls)))
        elif function := _DEFINE.fullmatch(code):
            self.blocks.append((function[1], len(calls)))
            # `_end` replaces this call by a jump behind the function.
            calls.append(ScriptCall(RETURN, (), {}, number))
            self.functions[function[1]] = len(calls)
        elif code == "end":
            if not self.blocks:
                raise _not_plain(number, line)
            self._end(number)
        else:
            try:
                calls.append(_plain_call(line, number))
            # The last two are raised for lines that are nested too deep.
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                raise _not_plain(number, line) from None

    def _end(self, number: int) -> None:
        """End the innermost loop or function at a line."""
        name, begin = self.blocks.pop()
        if not name:
            self.calls.append(ScriptCall(GO_TO, (begin,), {}, number))
            return
        self.calls.append(ScriptCall(RETURN, (), {}, number))
        behind = len(self.calls)
        self.calls[begin] = ScriptCall(GO_TO, (behind,), {}, self.calls[begin].line)

    def resolved(self) -> list[ScriptCall]:
        """The calls; calls of functions of the program are CALL with the place of the function."""
        found = []
        for call in self.calls:
            own = call.name in self.functions and not (call.positional or call.named)
            if own:
                place = self.functions[call.name]
                call = replace(call, name=CALL, positional=(place,))
            found.append(call)
        return found


def _not_plain(number: int, line: str) -> ScriptError:
    """The refusal of a line that needs an interpreter."""
    text = line.strip()[:MOST_SHOWN]
    return ScriptError(f"line {number} needs a URScript interpreter: {text}")


def _plain_call(line: str, number: int) -> ScriptCall:
    """The call of a line.

    Raises:
        ValueError: the line is no plain call.
        SyntaxError, RecursionError, MemoryError: the line is no expression, or nested too
            deep.
    """
    if len(line) > MAX_LINE:
        raise ValueError("too long")
    text = _DIGITAL_OUT.sub(r"set_digital_out(\1, \2)", line.strip())  # old syntax
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python's compiler, on what scripts contain
        # URScript has no escapes
        call = ast.parse(text.replace("\\", r"\\"), mode="eval").body
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError("no call")
    named = {str(each.arg): _literal(each.value) for each in call.keywords if each.arg}
    if len(named) != len(call.keywords):
        raise ValueError("**")
    return ScriptCall(call.func.id, tuple(map(_literal, call.args)), named, number)


def _literal(node: ast.expr) -> Any:
    """Value of a literal: number, text, truth, list or pose."""
    match node:
        case ast.Constant(value=bool() | int() | float() | str()):
            return node.value
        case ast.UnaryOp(op=sign, operand=ast.Constant(value=int() | float() as value)):
            if isinstance(sign, ast.USub | ast.UAdd) and not isinstance(value, bool):
                return -value if isinstance(sign, ast.USub) else value
        case ast.List():
            return [_literal(item) for item in node.elts]
        case ast.Subscript(value=ast.Name(id="p"), slice=inside):
            items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
            return Pose(_literal(item) for item in items)
    raise ValueError("not a literal")


LARGEST = 1e6
"""Largest number of a list, beyond any position, speed, mass or inertia of an arm."""
_SHOWN = 40  # characters of an argument that a message shows


class Arguments:
    """Arguments of a call by parameter name.

    Every method, and the constructor, raises `ScriptError`, which ends the program with a
    message, where an argument is missing, unknown, of another type, not finite or out of
    range.

    Args:
        call: call of the program.
        parameters: names of the parameters of the function, in order.

    Attributes:
        given: the arguments, by parameter name.
    """

    def __init__(self, call: ScriptCall, parameters: tuple[str, ...]) -> None:
        if len(call.positional) > len(parameters):
            raise ScriptError(f"{call.name} takes at most {len(parameters)} arguments")
        self._function = call.name
        self.given = dict(zip(parameters, call.positional, strict=False))
        for key, value in call.named.items():
            if key not in parameters or key in self.given:
                raise ScriptError(
                    f"{call.name}: {key[:_SHOWN]} is unknown or given twice"
                )
            self.given[key] = value

    def number(
        self,
        name: str,
        default: float | None = None,
        *,
        low: float = 0.0,
        high: float = LARGEST,
    ) -> float:
        """A number from `low` to `high`.

        Args:
            name: name of the parameter.
            default: value where the call lacks the parameter; None if the call must have
                the parameter.
            low: smallest value.
            high: largest value.
        """
        value = self._value(name, default)
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        self._require(numeric, name, "a number")
        self._require(low <= value <= high, name, f"{low:g} to {high:g}")
        return float(value)

    def whole(self, name: str, low: int, high: int) -> int:
        """A whole number from `low` to `high`.

        Args:
            name: name of the parameter.
            low: smallest value.
            high: largest value.
        """
        value = self._value(name)
        whole = (
            isinstance(value, int)
            and not isinstance(value, bool)
            and low <= value <= high
        )
        self._require(whole, name, f"a whole number from {low} to {high}")
        return int(value)

    def truth(self, name: str) -> bool:
        """True or False."""
        value = self._value(name)
        self._require(isinstance(value, bool), name, "True or False")
        return bool(value)

    def vector(
        self, name: str, size: int, default: tuple[float, ...] | None = None
    ) -> Array:
        """`size` numbers [size] up to `LARGEST`, from a list or a pose.

        Args:
            name: name of the parameter.
            size: number of numbers, 3 or 6.
            default: value where the call lacks the parameter; None if the call must have
                the parameter.
        """
        value = self._value(name, default)
        items = value if isinstance(value, list | tuple) else ()
        if len(items) != size or not all(_is_possible(item) for item in items):
            words = {3: "three", 6: "six"}[size]
            raise ScriptError(f"{self._function} needs {words} numbers as {name}")
        return np.array(items, dtype=float)

    def joints(self, name: str) -> Array:
        """Joint values [6]; a pose is refused."""
        if isinstance(self.given.get(name), Pose):
            text = "to a pose is not simulated; send joint positions"
            raise ScriptError(f"{self._function} {text}")
        return self.vector(name, 6)

    def _value(self, name: str, default: Any = None) -> Any:
        """The argument of a parameter, or the default; ScriptError without either."""
        value = self.given.get(name, default)
        if value is None:
            raise ScriptError(f"{self._function} needs an argument {name}")
        return value

    def _require(self, valid: bool, name: str, expected: str) -> None:
        """Refuse an argument that is not valid with a ScriptError.

        Args:
            valid: whether the argument is valid.
            name: name of the parameter.
            expected: what the argument must be, in words.
        """
        if not valid:
            value = self.given[name]
            shown = "a list"
            if isinstance(value, str | int | float):
                shown = repr(value)[:_SHOWN]
            raise ScriptError(f"{self._function}: {name} must be {expected}, not {shown}")


def _is_possible(item: Any) -> bool:
    """Whether an item of a list is a number up to LARGEST."""
    numeric = isinstance(item, int | float) and not isinstance(item, bool)
    return numeric and abs(item) <= LARGEST


Action = Callable[[ControlBox, Arguments], float | None]
"""Executes a call; returns how long the program then waits [s], UNTIL_REST, or None."""

UNTIL_REST = math.inf  # a call waits until the arm is at rest
CALLS_PER_CYCLE = 20
"""Calls that one controller cycle executes at most; the others follow in the next
cycles."""
INT32 = (-(1 << 31), (1 << 31) - 1)  # lowest and highest value of an integer register

# Values of parameters that a call leaves out.
_JOINT_ACCELERATION = 1.4  # default acceleration of movej and speedj [rad/s^2]
_JOINT_SPEED = 1.05  # default speed of movej [rad/s]
_TOOL_ACCELERATION = 1.2  # default acceleration of movel [m/s^2]
_TOOL_SPEED = 0.25  # default speed of movel [m/s]
_LOOKAHEAD = 0.1  # default lookahead time of servoj [s]
_GAIN = 300.0  # default gain of servoj
_STOP = 2.0  # deceleration of stopj and stopl [rad/s^2]

# Actions of the calls, see `Action`.


def _movej(box: ControlBox, given: Arguments) -> float:
    """Move in a straight line in joint space to joint positions or a pose."""
    q = given.vector("q", 6)
    if isinstance(given.given["q"], Pose):
        q = box.joint_positions(q)
    a = given.number("a", _JOINT_ACCELERATION)
    v = given.number("v", _JOINT_SPEED)
    t = given.number("t", 0.0)
    if t > 0.0:  # the time has priority: half to accelerate, half to decelerate
        t = max(t, 1.0 / box.rate)
        distance = float(np.abs(q - box.target_q).max())
        v = 2.0 * distance / t
        a = 4.0 * distance / t**2
    if not (v > 0.0 and a > 0.0):  # already at the target
        return 0.0
    box.arm.command(cmd.MoveJ(q, v, a))
    return UNTIL_REST


def _movel(box: ControlBox, given: Arguments) -> float:
    """Move the tool centre point along a line to a pose or to joint positions."""
    pose = given.vector("pose", 6)
    if not isinstance(given.given["pose"], Pose):
        pose = box.kinematics.forward(pose, box.tcp_offset)
    speed = given.number("v", _TOOL_SPEED)
    box.move_straight(pose, speed, given.number("a", _TOOL_ACCELERATION))
    return UNTIL_REST


def _servoj(box: ControlBox, given: Arguments) -> float:
    """Follow a streamed position for a time."""
    q = given.joints("q")
    time = given.number("t", 1.0 / box.rate)
    lookahead = given.number("lookahead_time", _LOOKAHEAD)
    gain = given.number("gain", _GAIN)
    box.arm.command(cmd.ServoJ(q, time, lookahead, gain))
    return time


def _speedj(box: ControlBox, given: Arguments) -> float:
    """Accelerate to joint speeds; without a time, the call waits until they are reached."""
    qd = given.joints("qd")
    a = given.number("a", _JOINT_ACCELERATION, low=1e-3)
    box.arm.command(cmd.SpeedJ(qd, a))
    return given.number("t", min(float(np.abs(qd).max()) / a, LARGEST))


def _stopj(box: ControlBox, given: Arguments) -> float:
    """Decelerate to rest."""
    box.arm.command(cmd.StopJ(given.number("a", _STOP)))
    return UNTIL_REST


def _set_payload(box: ControlBox, given: Arguments) -> None:
    """Set the payload that the controller assumes."""
    mass = given.number("m", 0.0)
    center = given.vector("cog", 3, (0.0, 0.0, 0.0))
    inertia = given.vector("inertia", 6, (0.0,) * 6)
    box.arm.command(cmd.SetPayload(mass, center, inertia))


def _set_digital_out(shift: int, count: int) -> Action:
    """An action that sets one of several digital outputs.

    Args:
        shift: number of the first of the outputs among all outputs of the controller.
        count: number of the outputs.
    """

    def action(box: ControlBox, given: Arguments) -> None:
        bit = 1 << (given.whole("n", 0, count - 1) + shift)
        box.set_digital_outputs(bit, bit if given.truth("b") else 0)

    return action


def _write_register(kind: str, value: Callable[[Arguments], float]) -> Action:
    """An action that writes an output register.

    Args:
        kind: "int" or "double".
        value: reads the value from the arguments.
    """

    def action(box: ControlBox, given: Arguments) -> None:
        register = f"output_{kind}_register_{given.whole('address', 0, 99)}"
        if register not in box.values:
            raise ScriptError(f"there is no register {register}")
        box.values[register] = value(given)

    return action


_MOVE = ("a", "v", "t", "r")
_PAYLOAD = ("m", "cog", "inertia", "transition_time")
_OUTPUT = ("n", "b")
_REGISTER = ("address", "value")

FUNCTIONS: dict[str, tuple[Action, tuple[str, ...]]] = {
    "movej": (_movej, ("q", *_MOVE)),
    "movel": (_movel, ("pose", *_MOVE)),
    "servoj": (_servoj, ("q", "a", "v", "t", "lookahead_time", "gain")),
    "speedj": (_speedj, ("qd", "a", "t")),
    "stopj": (_stopj, ("a",)),
    "stopl": (_stopj, ("a", "aRot")),
    "set_payload": (_set_payload, _PAYLOAD),
    "set_target_payload": (_set_payload, _PAYLOAD),
    "set_tcp": (lambda box, given: box.set_tool(given.vector("pose", 6)), ("pose",)),
    "set_digital_out": (_set_digital_out(0, 18), _OUTPUT),
    "set_standard_digital_out": (_set_digital_out(0, 8), _OUTPUT),
    "set_configurable_digital_out": (_set_digital_out(8, 8), _OUTPUT),
    "set_tool_digital_out": (_set_digital_out(16, 2), _OUTPUT),
    "write_output_integer_register": (
        _write_register("int", lambda given: given.whole("value", *INT32)),
        _REGISTER,
    ),
    "write_output_float_register": (
        _write_register(
            "double", lambda given: given.number("value", low=-1e300, high=1e300)
        ),
        _REGISTER,
    ),
    "protective_stop": (
        lambda box, given: box.arm.command(cmd.SafetyCommand.PROTECTIVE_STOP),
        (),
    ),
    "textmsg": (
        lambda box, given: box.send_message("".join(map(str, given.given.values()))),
        ("s1", "s2"),
    ),
    "popup": (
        lambda box, given: box.send_message(str(given.given.get("s", ""))),
        ("s", "title", "warning", "error", "blocking"),
    ),
    "sleep": (lambda box, given: given.number("t", 0.0), ("t",)),
    "sync": (lambda box, given: None, ()),
}
"""Action and parameters in order of each function that is simulated, by its name."""


class UrScriptProgram:
    """A program of calls, as a `Program`.

    The program also starts while the arm is off; a refused move ends the program.

    Args:
        box: arm, program and values of the controller.
        name: name of the program.
        calls: calls of the program, as `calls_of` returns them.
    """

    needs_arm = False

    def __init__(self, box: ControlBox, name: str, calls: list[ScriptCall]) -> None:
        self._box = box
        self.name = name
        self._calls = calls
        self._next = 0
        self._returns = list[int]()
        self._until_rest = False
        self._cycles = 0

    def step(self) -> bool:
        """Execute calls until a call takes time.

        Returns:
            False after the last call, else True.

        Raises:
            ScriptError: a function is not simulated, or does not accept the arguments.
        """
        box = self._box
        if self._until_rest and box.arm.busy:
            return True
        self._until_rest = False
        if self._cycles > 0:
            self._cycles -= 1
            return True
        for _ in range(CALLS_PER_CYCLE):
            if self._next >= len(self._calls):
                return False
            call = self._calls[self._next]
            self._next += 1
            if call.name in (GO_TO, CALL, RETURN):
                self._jump(call)
                continue
            box.values["script_control_line"] = call.line
            if call.name not in FUNCTIONS:
                raise ScriptError(f"{call.name[:64]} is not simulated")
            action, parameters = FUNCTIONS[call.name]
            wait = action(box, Arguments(call, parameters)) or 0.0
            self._until_rest = wait == UNTIL_REST
            self._cycles = 0 if self._until_rest else math.ceil(wait * box.rate)
            if self._until_rest or self._cycles > 0:
                return True
        return self._next < len(self._calls)

    def _jump(self, call: ScriptCall) -> None:
        """Continue at the place of a GO_TO or CALL, or behind the CALL before a RETURN."""
        if call.name == CALL:
            if len(self._returns) >= MOST_NESTED:
                raise ScriptError("functions are nested too deep")
            self._returns.append(self._next)
        if call.name == RETURN:
            self._next = self._returns.pop()
        else:
            self._next = call.positional[0]
