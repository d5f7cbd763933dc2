"""Splits a stream of URScript text into programs."""

from __future__ import annotations

import codecs
import re

from ur_energy_model.simulation.control.urscript_calls import Call, plain_calls

MAX_PROGRAM = 1 << 20
"""Longest program [characters]; longer ones are dropped."""
_HEADER = re.compile(r"(?:def|sec)\s+(\w+)\s*\(")
_NAME = re.compile(r"\s*([A-Za-z_]\w{0,63})\s*(?:\(|$)", re.ASCII)


class ScriptReader:
    """Splits a stream of script text into programs.

    A program is `def name():` ... `end`, both at the start of a line, or a single line.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._line: list[str] = []
        self._program: list[str] = []
        self._size = 0

    def feed(self, data: bytes) -> list[str]:
        """Append received bytes; returns the completed programs."""
        first, *others = self._decoder.decode(data).split("\n")
        self._append(first)
        programs = []
        for text in others:
            program = self._end_line()
            if program is not None:
                programs.append(program)
            self._append(text)
        return programs

    def _append(self, text: str) -> None:
        """Append to the current line; too much text is dropped with what it belongs to."""
        self._line.append(text)
        self._size += len(text)
        if self._size > MAX_PROGRAM:
            self._line, self._program, self._size = [], [], 0

    def _end_line(self) -> str | None:
        """Complete the current line; returns the program that it completes."""
        line = "".join(self._line).removesuffix("\r")
        self._line = []
        if self._program:
            self._program.append(line)
            self._size += 1
            if re.fullmatch(r"end\s*", line) is None:
                return None
        elif _HEADER.match(line):
            self._program = [line]
            return None
        else:
            self._program = [line]
        program, self._program, self._size = "\n".join(self._program), [], 0
        return program if program.strip() else None


def program_name(program: str) -> str:
    """Name of a program; for a single line the name of its function, if it has one."""
    match = _HEADER.match(program) or _NAME.match(program)
    return match[1][:64] if match else "a script"


def calls_of(program: str) -> list[Call] | None:
    """Calls of a program that contains only plain calls, otherwise None.

    Raises:
        ScriptError: too many lines.
    """
    lines = program.split("\n")
    return plain_calls(lines[1:-1], 2) if _HEADER.match(lines[0]) else plain_calls(lines)
