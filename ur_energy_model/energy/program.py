# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot program: its lines and nodes, and where in it the robot is.

PolyScope writes each node of a program tree into the script that it generates as a
comment of its own, `$ 3 "Waypoint_1"`, in front of the node's lines; RTDE sends the
number of the line that is executed as `script_control_line`.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, overload

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Indices

LINE = "script_control_line"
LARGEST = 1 << 24
"""Bytes that a script may have; PolyScope's with many URCaps have a few hundred thousand."""
MOST_LINES = 1_000_000
MOST_ITEMS = 100_000
"""Lines that a script may have, and its nodes, functions and calls together; they bound memory."""
# letters of a line in which nodes, blocks and calls are looked for
LONGEST_LINE = 100_000
MOST_NESTED = 1000  # blocks within blocks that are told apart
_NODE = re.compile(
    r'\$\s+(\d{1,9})\s+"(.*?)"(?:\s+"(?:no[Bb]reak|breakAfter|breakBefore)")?\s*'
)
_FUNCTION = re.compile(r"(?:global\s+)?(def|thread|sec)\s+([A-Za-z_]\w*)\s*\(.*")
_BLOCK = re.compile(r"(?:if|while|for|switch)\b.*:|(?:if|while|for|switch)\s*\(.*")
_TEXT = re.compile(r'"[^"]*"|\'[^\']*\'')
_CALLED = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*\(")
"""The search begins at words only: at each letter of a long one it would take quadratic time."""
_DEFINED = re.compile(
    r"(?m)^[^\S\n]*(?:global[^\S\n]+)?(?:def|thread|sec)[^\S\n]+([A-Za-z_]\w*)"
)
_NO_LINE = 2**31
"""From here on the number of a line, of 32 bits, is a negative one: none."""
_STOPPED = 1
"""Value of runtime_state while no program runs."""


@dataclass(frozen=True)
class ProgramNode:
    """A node of the program tree."""

    # number, label: as in the script
    number: int
    label: str
    # the first one of its own lines and the last; nodes within it have some in between
    lines: tuple[int, int]
    parent: int  # index of the node around it in the same function, -1 without one


class Lines(Sequence[str]):
    """Lines of a text, which is kept as a whole; index 0 is an empty line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = array("q", [0])
        at = text.find("\n")
        while at >= 0:
            self._starts.append(at + 1)
            at = text.find("\n", at + 1)
        self._starts.append(len(text) + 1)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        number = index % len(self)
        if number == 0:
            return ""
        return self._text[self._starts[number - 1] : self._starts[number] - 1].rstrip(
            "\r"
        )

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))


class Names(Sequence[str]):
    """One of few names for each line."""

    def __init__(self, names: Sequence[str], of: array[int]) -> None:
        self._names = names
        self._of = of

    def __len__(self) -> int:
        return len(self._of)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._names[k] for k in self._of[index]]
        return self._names[self._of[index]]


@dataclass(frozen=True)
class Script:
    """A script; lines count from 1, and index 0 of each sequence stands for none."""

    name: str  # of the program
    text: Lines  # of the lines
    function: Names  # by line, the name of the function it is in
    node: array[int]  # by line, the index of its node, -1 without one
    threads: frozenset[str]  # names of the functions that run beside the program
    # by function, and by name of those of the script that it calls, the lines of these
    # calls
    calls: dict[str, dict[str, list[int]]]
    nodes: tuple[ProgramNode, ...]  # in the order of the script

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Labels of the nodes, each with its number where another node has the same label."""
        labels = Counter(node.label for node in self.nodes)
        return tuple(
            f"{node.label} ({node.number})" if labels[node.label] > 1 else node.label
            for node in self.nodes
        )

    def within(self, inner: int, outer: int) -> bool:
        """Whether a node, by index, is another one or lies within it."""
        while inner >= 0 and inner != outer:
            inner = self.nodes[inner].parent
        return inner == outer and outer >= 0


def read_script(path: str | Path) -> Script:
    """Read the script of a program, as PolyScope saves it beside its .urp file.

    In time proportional to its length, and in bounded memory.

    Raises:
        InputError: it cannot be read, or contains no program.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        problem = f"cannot be read ({error.strerror or error})"
        raise InputError(path, problem, "give the .script file of the program") from error
    if len(data) > LARGEST or b"\0" in data:
        raise InputError(path, "is no script", "give the .script file, not the .urp file")
    if not data.strip():
        raise InputError(path, "is empty", "give the .script file of the program")
    return parse_script(data.decode("utf-8", "replace"), Path(path).stem, source=path)


@dataclass
class _Parser:
    """What the lines of a script have shown so far."""

    name: str  # of the program, if it defines no function
    defined: set[str]  # names of the functions of the script
    outer: str | None = None  # name of the first function
    functions: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    found: list[tuple[int, str, int]] = field(default_factory=list)
    """Number, label and parent of each node."""
    calls: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    blocks: list[tuple[int, int, bool]] = field(default_factory=list)
    """Innermost last: function and node by number, and whether the block belongs to a thread."""
    deeper: int = 0  # blocks that are nested too deep to be told apart
    items: int = 0  # nodes, functions and calls

    def __post_init__(self) -> None:
        self.functions.append(self.name)
        self.blocks.append((0, -1, False))

    def take(self, number: int, line: str) -> tuple[int, int]:
        """The function and the node of the next line, by number."""
        code = _TEXT.sub('""', line).split("#", 1)[0].strip()
        if node := _NODE.fullmatch(line.strip()):
            self._begin_node(int(node[1]), node[2])
        elif begin := _FUNCTION.fullmatch(code):
            self._begin_function(begin[2], thread=begin[1] == "thread")
        elif _BLOCK.fullmatch(code):
            self._enter(self.blocks[-1])
        if code == "end":
            self._leave()
        function, of, _ = self.blocks[-1]
        if not (node or begin):
            called = {match[1] for match in _CALLED.finditer(code)}
            for callee in sorted(called & self.defined):
                own = self.calls.setdefault(self.functions[function], {})
                own.setdefault(callee, []).append(number)
                self.items += 1
        return function, of

    def _begin_node(self, number: int, label: str) -> None:
        function, _, beside = self.blocks[-1]
        around = self.blocks[-2] if len(self.blocks) > 1 else (-1, -1, False)
        parent = around[1] if around[0] == function else -1
        self.blocks[-1] = function, len(self.found), beside
        self.found.append((number, label, parent))
        self.items += 1

    def _begin_function(self, name: str, *, thread: bool) -> None:
        self.outer = self.outer or name
        beside = self.blocks[-1][2] or thread
        self._enter((len(self.functions), -1, beside))
        self.functions.append(name)
        if beside:
            self.threads.add(name)
        self.items += 1

    def _enter(self, block: tuple[int, int, bool]) -> None:
        if len(self.blocks) < MOST_NESTED:
            self.blocks.append(block)
        else:
            self.deeper += 1

    def _leave(self) -> None:
        if self.deeper:
            self.deeper -= 1
        elif len(self.blocks) > 1:
            self.blocks.pop()


def parse_script(
    text: str, name: str = "program", *, source: str | Path = "the script"
) -> Script:
    """The script of a program; `name` is used for one that defines no function.

    Raises:
        InputError: it has more lines, nodes, functions or calls than any program.
    """
    too_many = "is no script: it has over"
    remedy = "give the .script file of the program"
    if text.count("\n") >= MOST_LINES:
        raise InputError(source, f"{too_many} {MOST_LINES:,} lines", remedy)
    lines = Lines(text)
    parser = _Parser(name, {match[1] for match in _DEFINED.finditer(text)})
    functions = array("i", [0])
    nodes = array("i", [-1])
    spans: list[list[int]] = []  # first and last line of each node
    for number in range(1, len(lines)):
        function, node = parser.take(number, lines[number][:LONGEST_LINE])
        if parser.items > MOST_ITEMS:
            problem = f"{too_many} {MOST_ITEMS:,} nodes, functions and calls"
            raise InputError(source, problem, remedy)
        functions.append(function)
        nodes.append(node)
        if node == len(spans):
            spans.append([number, number])
        elif node >= 0:
            spans[node][1] = number
    return Script(
        name=parser.outer or name,
        text=lines,
        function=Names(parser.functions, functions),
        node=nodes,
        threads=frozenset(parser.threads),
        calls=parser.calls,
        nodes=tuple(
            ProgramNode(number, label, (first, last), parent)
            for (number, label, parent), (first, last) in zip(
                parser.found, spans, strict=True
            )
        ),
    )


def lines_of(batch: Telemetry) -> Indices:
    """Line in execution at each sample [samples]; 0 where none is, or none is recorded."""
    values = batch.columns.get(LINE)
    if values is None:
        return np.zeros(len(batch), dtype=np.intp)
    lines = np.where((values >= 1) & (values < _NO_LINE), np.nan_to_num(values), 0)
    if (state := batch.columns.get("runtime_state")) is not None:
        lines[state == _STOPPED] = 0  # the number of the last line may remain
    return lines.astype(np.intp)


class ProgramPosition(NamedTuple):
    """Where in a program the robot is."""

    # indexes of nodes, -1 where a function is outside all of them, each with the
    # function; from the outermost to the innermost call
    path: tuple[tuple[str, int], ...] = ()
    line: int = 0  # number of the line; 0 where it cannot be told

    @property
    def node(self) -> int:
        """Index of the node, -1 without one."""
        return self.path[-1][1] if self.path else -1


NOWHERE = ProgramPosition()


@dataclass
class ProgramTracker:
    """Follows the line in execution: which node, called from where, and how often.

    A line of another function is a call if the present one contains it, and otherwise a
    return to the nearest that does. Lines of threads, and those a script does not have,
    are nowhere.
    """

    # None without one; then every line is a place of its own
    script: Script | None = None
    # number of times that each line (positive), and each node (its index, negative and
    # less one), was begun; returns from calls are not
    executions: dict[int, int] = field(default_factory=dict)
    # function, node and line
    _frames: list[tuple[str, int, int]] = field(default_factory=list)
    # by node, the line at which it began
    _entry: dict[int, int] = field(default_factory=dict)

    def move(self, line: int) -> ProgramPosition:
        """The place of a line other than the last one."""
        script = self.script
        if script is None:
            if line:
                self._count(line)
            return ProgramPosition((), line)
        if not 0 < line < len(script.text) or script.function[line] in script.threads:
            return NOWHERE
        function = script.function[line]
        node = script.node[line]
        frames = self._frames
        called = [each for each, _, _ in frames]
        begins = enters = True
        if function in called:
            depth = called.index(function)
            returns, (_, left, before) = depth < len(frames) - 1, frames[depth]
            begins = not (returns and before == line)
            again = line == self._entry.get(node, line) and not returns
            enters = again or not script.within(left, node)
            del frames[depth:]
        else:
            while frames and function not in script.calls.get(frames[-1][0], {}):
                frames.pop()
            if frames:  # a call takes no time: its line is rarely seen
                caller, _, at = frames[-1]
                sites = script.calls[caller][function]
                site = next((each for each in sites if each >= at), sites[0])
                frames[-1] = caller, script.node[site], site
        frames.append((function, node, line))
        if begins:
            self._count(line)
        if enters and node >= 0:
            self._count(-1 - node)
            self._entry[node] = line
        return ProgramPosition(
            tuple((function, node) for function, node, _ in frames), line
        )

    def _count(self, key: int) -> None:
        self.executions[key] = self.executions.get(key, 0) + 1
