"""A robot program: its lines and nodes, and where in it the robot is.

PolyScope writes each node of a program tree into the script that it generates as a comment of its
own, `$ 3 "Waypoint_1"`, in front of the node's lines; RTDE sends the number of the line that is
executed as `script_control_line`.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.typing import Indices

LINE = "script_control_line"
LARGEST = 1 << 24
"""Bytes that a script may have; PolyScope's with many URCaps have a few hundred thousand."""
_NODE = re.compile(r'\$\s+(\d{1,9})\s+"(.*?)"(?:\s+"(?:no[Bb]reak|breakAfter|breakBefore)")?\s*')
_FUNCTION = re.compile(r"(?:global\s+)?(def|thread|sec)\s+([A-Za-z_]\w*)\s*\(.*")
_BLOCK = re.compile(r"(?:if|while|for|switch)\b.*:|(?:if|while|for|switch)\s*\(.*")
_TEXT = re.compile(r'"[^"]*"|\'[^\']*\'')
_CALLED = re.compile(r"([A-Za-z_]\w*)\s*\(")
_NO_LINE = 2**31
"""From here on the number of a line, of 32 bits, is a negative one: none."""
_STOPPED = 1
"""Value of runtime_state while no program runs."""


@dataclass(frozen=True)
class Node:
    """A node of the program tree."""

    # number, label: as in the script
    number: int
    label: str
    # the first one of its own lines and the last; nodes within it have some in between
    lines: tuple[int, int]
    parent: int  # index of the node around it in the same function, -1 without one


@dataclass(frozen=True)
class Script:
    """A script; lines count from 1, and index 0 of each sequence stands for none."""

    name: str  # of the program
    text: tuple[str, ...]  # of the lines
    function: tuple[str, ...]  # by line, the name of the function it is in
    node: tuple[int, ...]  # by line, the index of its node, -1 without one
    threads: frozenset[str]  # names of the functions that run beside the program
    # by function, and by name of those that it calls, the lines of these calls
    calls: dict[str, dict[str, list[int]]]
    nodes: tuple[Node, ...]  # in the order of the script

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
    script = parse_script(data.decode("utf-8", "replace"), Path(path).stem)
    if not any(map(str.strip, script.text)):
        raise InputError(path, "is empty", "give the .script file of the program")
    return script


def parse_script(text: str, name: str = "program") -> Script:
    """The script of a program; `name` is used for one that defines no function."""
    lines = [line.rstrip("\r") for line in text.split("\n")]
    found: list[tuple[int, str, int]] = []  # number, label and parent of each node
    functions, nodes, threads = [name], [-1], set[str]()
    calls: dict[str, dict[str, list[int]]] = {}
    outer: str | None = None
    # Innermost last: function, node, and whether the block belongs to a thread.
    blocks: list[tuple[str, int, bool]] = [(name, -1, False)]
    for line in lines:
        code = _TEXT.sub('""', line).split("#", 1)[0].strip()
        if node := _NODE.fullmatch(line.strip()):
            function, _, beside = blocks[-1]
            around = blocks[-2] if len(blocks) > 1 else ("", -1, False)
            found.append((int(node[1]), node[2], around[1] if around[0] == function else -1))
            blocks[-1] = function, len(found) - 1, beside
        elif begin := _FUNCTION.fullmatch(code):
            outer = outer or begin[2]
            beside = blocks[-1][2] or begin[1] == "thread"
            blocks.append((begin[2], -1, beside))
            if beside:
                threads.add(begin[2])
        elif _BLOCK.fullmatch(code):
            blocks.append(blocks[-1])
        if code == "end" and len(blocks) > 1:
            blocks.pop()
        function, of, _ = blocks[-1]
        for callee in () if node or begin else _CALLED.findall(code):
            calls.setdefault(function, {}).setdefault(callee, []).append(len(functions))
        functions.append(function)
        nodes.append(of)
    own: list[list[int]] = [[] for _ in found]
    for number, node_of in enumerate(nodes):
        if node_of >= 0:
            own[node_of].append(number)
    return Script(
        name=outer or name,
        text=("", *lines),
        function=tuple(functions),
        node=tuple(nodes),
        threads=frozenset(threads),
        calls=calls,
        nodes=tuple(
            Node(number, label, (lines_of[0], lines_of[-1]), parent)
            for (number, label, parent), lines_of in zip(found, own, strict=True)
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


class Place(NamedTuple):
    """Where in a program the robot is."""

    # indexes of nodes, -1 where a function is outside all of them, each with the function; from the
    # outermost to the innermost call
    path: tuple[tuple[str, int], ...] = ()
    line: int = 0  # number of the line; 0 where it cannot be told

    @property
    def node(self) -> int:
        """Index of the node, -1 without one."""
        return self.path[-1][1] if self.path else -1


NOWHERE = Place()


@dataclass
class ProgramTracker:
    """Follows the line in execution: which node, called from where, and how often.

    A line of another function is a call if the present one contains it, and otherwise a return
    to the nearest that does. Lines of threads, and those a script does not have, are nowhere.
    """

    script: Script | None = None  # None without one; then every line is a place of its own
    # number of times that each line (positive), and each node (its index, negative and less one),
    # was begun; returns from calls are not
    executions: dict[int, int] = field(default_factory=dict)
    _frames: list[tuple[str, int, int]] = field(default_factory=list)  # function, node and line
    _entry: dict[int, int] = field(default_factory=dict)  # by node, the line at which it began

    def move(self, line: int) -> Place:
        """The place of a line other than the last one."""
        script = self.script
        if script is None:
            if line:
                self._count(line)
            return Place((), line)
        if not 0 < line < len(script.text) or script.function[line] in script.threads:
            return NOWHERE
        function, node, frames = script.function[line], script.node[line], self._frames
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
        return Place(tuple((function, node) for function, node, _ in frames), line)

    def _count(self, key: int) -> None:
        self.executions[key] = self.executions.get(key, 0) + 1
