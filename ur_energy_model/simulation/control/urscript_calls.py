"""Parses plain function calls of URScript: a name and literal arguments.

There is no URScript interpreter. The parser is not recursive in its input beyond `MAX_DEPTH` and
reads no line longer than `MAX_LINE`, so no text can exhaust time, memory or the stack.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from ur_energy_model.simulation.control.program import ScriptError

MAX_LINE = 10_000
"""Longest line of a plain program [characters]."""
MAX_CALLS = 5000
"""Most lines of a plain program."""
MAX_DEPTH = 8
"""Deepest nesting of lists."""

_DIGITAL_OUT = re.compile(r"digital_out\[(\d+)\]\s*=\s*(True|False)", re.ASCII)
_NUMBER = r"[-+]?\s*(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)"
_TOKEN = re.compile(
    rf"""\s*(?:(?P<number>{_NUMBER})|(?P<text>"[^"]*"|'[^']*')|(?P<pose>p\[)
    |(?P<name>[A-Za-z_]\w*)|(?P<mark>[()\[\],=])|(?P<comment>\#.*))\s*""",
    re.ASCII | re.VERBOSE,
)
_LONGEST_INTEGER = 20
_TRUTH = {"True": True, "False": False}


class Pose(tuple[float, ...]):
    """A pose p[x, y, z, rx, ry, rz]: position in m, rotation vector in rad."""

    __slots__ = ()


@dataclass(frozen=True)
class Call:
    """A plain call with literal arguments, such as `movej([0, 0, 0, 0, 0, 0], a=1.2)`.

    Attributes:
        name: function name.
        positional: positional arguments.
        named: named arguments.
        line: of its program, from 1; 0 where it is none of a program.
    """

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]
    line: int = field(default=0, compare=False)


def plain_calls(lines: list[str], first: int = 1) -> list[Call] | None:
    """Calls of a program's lines if they are plain calls only, otherwise None.

    Args:
        lines: of the program.
        first: number of the first of them.

    Raises:
        ScriptError: more than `MAX_CALLS` lines.
    """
    if len(lines) > MAX_CALLS:
        raise ScriptError(f"the script has {len(lines)} lines; at most {MAX_CALLS} are simulated")
    calls = []
    for number, line in enumerate(lines, first):
        if not line.split("#", 1)[0].strip():
            continue
        call = _plain_call(line)
        if call is None:
            return None
        calls.append(replace(call, line=number))
    return calls


def _plain_call(line: str) -> Call | None:
    if len(line) > MAX_LINE:
        return None
    try:
        return _Parser(_DIGITAL_OUT.sub(r"set_digital_out(\1, \2)", line)).call()  # old syntax
    except ValueError:
        return None


class _Parser:
    """Parser of one line; its methods raise ValueError where the line is not a plain call."""

    def __init__(self, line: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(line):
            match = _TOKEN.match(line, place)
            if match is None:
                raise ValueError(f"{line[place]!r} is not plain")
            place = match.end()
            kind = str(match.lastgroup)
            if kind != "comment":
                self._tokens.append((kind, match[kind]))
        self._tokens.append(("end", ""))
        self._next = 0

    def call(self) -> Call:
        name = self._take("name")
        self._take("mark", "(")
        positional: list[Any] = []
        named: dict[str, Any] = {}
        while not self._skips(")"):
            if positional or named:
                self._take("mark", ",")
            if self._tokens[self._next + 1 : self._next + 2] == [("mark", "=")]:
                key = self._take("name")
                self._take("mark", "=")
                if key in named:
                    raise ValueError(f"{key} is given twice")
                named[key] = self._value()
            elif named:
                raise ValueError("a positional argument follows a named one")
            else:
                positional.append(self._value())
        self._take("end")
        return Call(name, tuple(positional), named)

    def _value(self, depth: int = 0) -> Any:
        kind, text = self._tokens[self._next]
        self._next += 1
        if kind == "number":
            return _number(text)
        if kind == "text":
            return text[1:-1]
        if kind == "name" and text in _TRUTH:
            return _TRUTH[text]
        if (kind == "pose" or text == "[") and depth < MAX_DEPTH:
            items: list[Any] = []
            while not self._skips("]"):
                if items:
                    self._take("mark", ",")
                items.append(self._value(depth + 1))
            return Pose(items) if kind == "pose" else items
        raise ValueError(f"{text!r} is not a literal")

    def _take(self, kind: str, text: str | None = None) -> str:
        found, value = self._tokens[self._next]
        if found != kind or text not in (None, value):
            raise ValueError(f"{value!r} is in the place of {text or kind}")
        self._next += 1
        return value

    def _skips(self, mark: str) -> bool:
        """Skip a mark if it comes next."""
        found = self._tokens[self._next] == ("mark", mark)
        self._next += found
        return found


def _number(text: str) -> int | float:
    text = "".join(text.split())
    if "x" in text.lower():
        return int(text, 16)
    whole = text.lstrip("+-").isdigit() and len(text) <= _LONGEST_INTEGER
    return int(text) if whole else float(text)
