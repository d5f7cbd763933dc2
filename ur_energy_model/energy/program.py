# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A robot program: its lines and nodes, and the position of the robot in the program.

PolyScope writes each node of a program tree into the script that it generates as a
comment line, `$ 3 "Waypoint_1"`, in front of the node's lines; RTDE sends the
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
"""Largest number of bytes of a script; scripts of PolyScope with many URCaps have a few hundred
thousand."""
MOST_LINES = 1_000_000  # largest number of lines of a script, which limits memory
MOST_ITEMS = 100_000
"""Largest number of nodes, functions and calls together, which limits memory."""
LONGEST_LINE = 100_000
"""Number of letters of a line in which nodes, blocks and calls are searched."""
MOST_NESTED = 1000  # number of levels of nested blocks that are distinguished
_NODE = re.compile(
    r'\$\s+(\d{1,9})\s+"(.*?)"(?:\s+"(?:no[Bb]reak|breakAfter|breakBefore)")?\s*'
)
_FUNCTION = re.compile(r"(?:global\s+)?(def|thread|sec)\s+([A-Za-z_]\w*)\s*\(.*")
_BLOCK = re.compile(r"(?:if|while|for|switch)\b.*:|(?:if|while|for|switch)\s*\(.*")
_TEXT = re.compile(r'"[^"]*"|\'[^\']*\'')
_CALLED = re.compile(r"(?<!\w)([A-Za-z_]\w*)\s*\(")
"""The lookbehind lets a search begin only at the begin of a word: a search from each letter of a
long word would take quadratic time."""
_DEFINED = re.compile(
    r"(?m)^[^\S\n]*(?:global[^\S\n]+)?(?:def|thread|sec)[^\S\n]+([A-Za-z_]\w*)"
)
_NO_LINE = 2**31
"""Larger numbers are negative numbers of 32 bits, which stand for no line."""
_STOPPED = 1  # value of runtime_state while no program runs


@dataclass(frozen=True)
class ProgramNode:
    """A node of the program tree.

    Attributes:
        number: number of the node in the script.
        label: label of the node in the script.
        lines: numbers of the first and the last line that belong to the node itself; nodes
            within it have lines in between.
        parent: index of the node around it in the same function; -1 without one.
    """

    number: int
    label: str
    lines: tuple[int, int]
    parent: int


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
        begin = self._starts[number - 1]
        end = self._starts[number] - 1
        return self._text[begin:end].rstrip("\r")

    def __iter__(self) -> Iterator[str]:
        return (self[k] for k in range(len(self)))


class Names(Sequence[str]):
    """One of few names for each line.

    Args:
        names: the few names.
        numbers: index of each line's name among the names.
    """

    def __init__(self, names: Sequence[str], numbers: array[int]) -> None:
        self._names = names
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self._names[number] for number in self._numbers[index]]
        return self._names[self._numbers[index]]


@dataclass(frozen=True)
class Script:
    """A script; lines count from 1, and index 0 of each sequence stands for none.

    Attributes:
        name: name of the program.
        text: text of each line.
        function: name of the function that each line is in.
        node: index of the node of each line; -1 without one.
        threads: names of the functions that run beside the program.
        calls: lines at which functions of the script are called, by the name of the
            calling function and then by the number of the called one.
        nodes: nodes in the order of the script.
    """

    name: str
    text: Lines
    function: Names
    node: array[int]
    threads: frozenset[str]
    calls: dict[str, dict[str, list[int]]]
    nodes: tuple[ProgramNode, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Labels of the nodes, each with its number where another node has the same label."""
        occurrences = Counter(node.label for node in self.nodes)
        names = []
        for node in self.nodes:
            is_unique = occurrences[node.label] == 1
            names.append(node.label if is_unique else f"{node.label} ({node.number})")
        return tuple(names)

    def within(self, inner: int, outer: int) -> bool:
        """Whether a node, by index, is another one or lies within it."""
        while inner >= 0 and inner != outer:
            inner = self.nodes[inner].parent
        return inner == outer and outer >= 0


def read_script(path: str | Path) -> Script:
    """Read the script of a program, as PolyScope saves it beside its .urp file.

    Reading takes time in proportion to the length of the script, and bounded memory.

    Args:
        path: path of the .script file.

    Raises:
        InputError: the file cannot be read, or contains no program.
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


class _Block(NamedTuple):
    """A block of a script, from its first line to its `end`.

    Attributes:
        function: number of the function it is in.
        node: index of the last node that began in it; -1 without one.
        in_thread: whether it belongs to a thread.
    """

    function: int
    node: int
    in_thread: bool


@dataclass
class _Parser:
    """State of the parser after the lines so far.

    Attributes:
        name: name of the program, if it defines no function.
        defined: names of the functions of the script.
        outer: name of the first function; None before it.
        functions: names by number; number 0 is outside of all functions.
        threads: names of the functions that run beside the program.
        found: number, label and parent of each node.
        calls: see `Script`.
        blocks: blocks around the present line, the innermost last.
        deeper: number of blocks around the present line beyond MOST_NESTED.
        items: number of nodes, functions and calls.
    """

    name: str
    defined: set[str]
    outer: str | None = None
    functions: list[str] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    found: list[tuple[int, str, int]] = field(default_factory=list)
    calls: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    blocks: list[_Block] = field(default_factory=list)
    deeper: int = 0
    items: int = 0

    def __post_init__(self) -> None:
        self.functions.append(self.name)
        self.blocks.append(_Block(0, -1, in_thread=False))

    def take(self, number: int, line: str) -> tuple[int, int]:
        """Parse the next line.

        Args:
            number: number of the line, from 1.
            line: text of the line.

        Returns:
            Number of the function and index of the node of the line; -1 without a node.
        """
        code = _TEXT.sub('""', line).split("#", 1)[0].strip()
        node = _NODE.fullmatch(line.strip())
        begin = _FUNCTION.fullmatch(code)
        if node:
            self._begin_node(int(node[1]), node[2])
        elif begin:
            self._begin_function(begin[2], thread=begin[1] == "thread")
        elif _BLOCK.fullmatch(code):
            self._enter(self.blocks[-1])
        if code == "end":
            self._leave()
        block = self.blocks[-1]
        if not (node or begin):
            caller = self.functions[block.function]
            called = {match[1] for match in _CALLED.finditer(code)}
            for callee in sorted(called & self.defined):
                calls_of_function = self.calls.setdefault(caller, {})
                calls_of_function.setdefault(callee, []).append(number)
                self.items += 1
        return block.function, block.node

    def _begin_node(self, number: int, label: str) -> None:
        """Begin a node; its parent is the node of the block around the present one."""
        block = self.blocks[-1]
        parent = -1
        if len(self.blocks) > 1 and self.blocks[-2].function == block.function:
            parent = self.blocks[-2].node
        self.blocks[-1] = block._replace(node=len(self.found))
        self.found.append((number, label, parent))
        self.items += 1

    def _begin_function(self, name: str, *, thread: bool) -> None:
        """Begin a function; functions defined within a thread belong to the thread."""
        self.outer = self.outer or name
        in_thread = self.blocks[-1].in_thread or thread
        self._enter(_Block(len(self.functions), -1, in_thread))
        self.functions.append(name)
        if in_thread:
            self.threads.add(name)
        self.items += 1

    def _enter(self, block: _Block) -> None:
        """Begin a block within the present one."""
        if len(self.blocks) < MOST_NESTED:
            self.blocks.append(block)
        else:
            self.deeper += 1

    def _leave(self) -> None:
        """End the innermost block."""
        if self.deeper:
            self.deeper -= 1
        elif len(self.blocks) > 1:
            self.blocks.pop()


def parse_script(
    text: str, name: str = "program", *, source: str | Path = "the script"
) -> Script:
    """Parse the script of a program.

    Args:
        text: text of the script.
        name: name of a program whose script defines no function.
        source: source of the script, for messages.

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
    found = []
    for (number, label, parent), (first, last) in zip(parser.found, spans, strict=True):
        found.append(ProgramNode(number, label, (first, last), parent))
    return Script(
        name=parser.outer or name,
        text=lines,
        function=Names(parser.functions, functions),
        node=nodes,
        threads=frozenset(parser.threads),
        calls=parser.calls,
        nodes=tuple(found),
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
    """Position of the robot in a program.

    Attributes:
        path: path from the outermost to the innermost call, the name of each function
            with the index of the node in it; -1 outside of all nodes.
        line: number of the line; 0 where it is not known.
    """

    path: tuple[tuple[str, int], ...] = ()
    line: int = 0

    @property
    def node(self) -> int:
        """Index of the node, -1 without one."""
        if not self.path:
            return -1
        _, node = self.path[-1]
        return node


NOWHERE = ProgramPosition()
"""The position while no line of the program is known."""


class _Frame(NamedTuple):
    """A function under way: its name, the index of the present node and the present line."""

    function: str
    node: int
    line: int


@dataclass
class ProgramTracker:
    """Follows the line in execution: its node, the calls that led to it, and their number.

    A line of another function is taken for a call if the present function contains a call of
    that function, and otherwise for a return to the nearest function that contains one.
    Lines of threads, and lines that the script does not have, are NOWHERE.

    Attributes:
        script: script of the program; without it every line is a separate position.
        executions: how often each line and each node was begun, returns from calls not
            counted. Keys are numbers of lines, and -1 less the index for nodes.
    """

    script: Script | None = None
    executions: dict[int, int] = field(default_factory=dict)
    _frames: list[_Frame] = field(default_factory=list)
    _entry: dict[int, int] = field(default_factory=dict)
    """Line at which each node began, by its index."""

    def move(self, line: int) -> ProgramPosition:
        """The position of a line other than the last one."""
        script = self.script
        if script is None:
            if line:
                self._count(line)
            return ProgramPosition(line=line)
        if not 0 < line < len(script.text) or script.function[line] in script.threads:
            return NOWHERE
        function = script.function[line]
        node = script.node[line]
        frames = self._frames
        called = [frame.function for frame in frames]
        begins_line = True
        begins_node = True
        if function in called:
            depth = called.index(function)
            before = frames[depth]
            returns = depth < len(frames) - 1
            begins_line = not (returns and before.line == line)
            is_entry = line == self._entry.get(node, line) and not returns
            begins_node = is_entry or not script.within(before.node, node)
            del frames[depth:]
        else:
            self._call(script, function)
        frames.append(_Frame(function, node, line))
        if begins_line:
            self._count(line)
        if begins_node and node >= 0:
            self._count(-1 - node)
            self._entry[node] = line
        path = tuple((frame.function, frame.node) for frame in frames)
        return ProgramPosition(path, line)

    def _call(self, script: Script, function: str) -> None:
        """Return to the nearest function that calls this one, and to the line of the call.

        A call takes no time, so that its line is rarely among the samples. The next line
        with such a call is taken for it, or the first one if no line follows.
        """
        frames = self._frames
        while frames and function not in script.calls.get(frames[-1].function, {}):
            frames.pop()
        if not frames:
            return
        caller = frames[-1]
        lines = script.calls[caller.function][function]
        line = next((each for each in lines if each >= caller.line), lines[0])
        frames[-1] = _Frame(caller.function, script.node[line], line)

    def _count(self, key: int) -> None:
        """Count an execution of a line or node."""
        self.executions[key] = self.executions.get(key, 0) + 1
