"""Splits URScript text into programs and parses plain function calls.

There is no URScript interpreter: programs that need one are recognised and refused.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

MAX_PROGRAM = 1 << 20
_DIGITAL_OUT = re.compile(r"digital_out\[(\d+)\]\s*=\s*(True|False)")
_HEADER = re.compile(r"(?:def|sec)\s+(\w+)\s*\(")


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
    """

    name: str
    positional: tuple[Any, ...]
    named: dict[str, Any]

    def argument(self, position: int, name: str, default: Any = None) -> Any:
        """An argument by position or by name."""
        if position < len(self.positional):
            return self.positional[position]
        return self.named.get(name, default)


class ScriptReader:
    """Splits a stream of script text into programs.

    A program is `def name():` ... `end`, both at the start of a line, or a single line.
    """

    def __init__(self) -> None:
        self._text = ""
        self._program: list[str] = []

    def feed(self, data: bytes) -> list[str]:
        """Append received bytes; returns the completed programs."""
        self._text += data.decode(errors="replace").replace("\r\n", "\n")
        *lines, self._text = self._text.split("\n")
        programs = []
        for line in lines:
            if self._program:
                self._program.append(line)
                if re.fullmatch(r"end\s*", line):
                    programs.append("\n".join(self._program))
                    self._program = []
            elif _HEADER.match(line):
                self._program = [line]
            elif line.strip():
                programs.append(line)
        if len(self._text) + sum(map(len, self._program)) > MAX_PROGRAM:
            self._text, self._program = "", []
        return programs


def program_name(program: str) -> str:
    """Name of a program; for a single line the name of its function."""
    match = _HEADER.match(program)
    return match[1] if match else program.split("(", 1)[0].strip()


def plain_calls(program: str) -> list[Call] | None:
    """Calls of a program that contains only plain calls, otherwise None."""
    lines = program.split("\n")
    if _HEADER.match(lines[0]):
        lines = lines[1:-1]
    calls = []
    for line in lines:
        text = line.split("#", 1)[0].strip()
        if not text:
            continue
        call = _plain_call(text)
        if call is None:
            return None
        calls.append(call)
    return calls


def _plain_call(text: str) -> Call | None:
    text = _DIGITAL_OUT.sub(r"set_digital_out(\1, \2)", text)  # old syntax
    try:
        node = ast.parse(text, mode="eval").body
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            return None
        positional = tuple(_literal(argument) for argument in node.args)
        named = {item.arg: _literal(item.value) for item in node.keywords if item.arg}
    except (SyntaxError, ValueError):
        return None
    return Call(node.func.id, positional, named)


def _literal(node: ast.expr) -> Any:
    """Value of a literal; `p[...]`, a subscript in Python syntax, becomes a Pose."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
        if node.value.id != "p":
            raise ValueError("not a literal")
        return Pose(ast.literal_eval(node.slice))
    return ast.literal_eval(node)
