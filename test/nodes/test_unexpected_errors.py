"""Exceptions that nobody expects end a process of nodes with one line."""

from __future__ import annotations

import sys

import pytest

from test.nodes.conftest import Cell

PROGRAM = """
import sys, threading
from ur_energy_model.nodes.identification import IdentificationNode
from ur_energy_model.nodes.node_process import run_nodes

class Faulty(IdentificationNode):
    def fail(self):
        raise RuntimeError("the {place} is\\nbroken")
    def open(self):
        super().open()
        if "{place}" == "configuration":
            self.fail()
        if "{place}" == "timer":
            self.add_report(self.fail)
    def start(self):
        super().start()
        if "{place}" == "thread":
            for _ in range(3):
                threading.Thread(target=self.fail, name="some work").start()
    def release(self):
        if "{place}" == "end":
            self.fail()

if "{place}" == "end":
    threading.Timer(2.0, lambda: nodes[0].finish(0)).start()
nodes = []
def make():
    nodes.append(Faulty())
    return nodes
sys.exit(run_nodes(make))
"""


@pytest.mark.parametrize(
    ("place", "named"),
    [
        ("configuration", "identification: configure"),
        ("timer", "a callback"),
        ("thread", "thread 'some work'"),
        ("end", "the end of identification"),
    ],
)
def test_an_unexpected_error_ends_the_process_with_one_line(
    place: str, named: str, cell: Cell
) -> None:
    child = cell.run_command([sys.executable, "-c", PROGRAM.format(place=place)])
    output, _ = child.communicate(timeout=60.0)
    assert child.returncode == 1, output
    lines = [line for line in output.splitlines() if line.strip()]
    assert len(lines) == 1, output
    assert f"unexpected error in {named}: RuntimeError: the {place} is broken" in lines[0]
    (file,) = (cell.folder / "ros_log").glob("*_errors.txt")
    assert str(file) in lines[0]
    assert "Traceback" in file.read_text()


@pytest.mark.parametrize("arguments", [["-r", "__ns:=cell1"], ["-p", "a"], ["--nope"]])
def test_ros_arguments_that_cannot_be_parsed_end_in_one_line(
    arguments: list[str], cell: Cell
) -> None:
    program = "from ur_energy_model.nodes.logger import main; main()"
    child = cell.run_command([sys.executable, "-c", program, "--ros-args", *arguments])
    output, _ = child.communicate(timeout=60.0)
    assert child.returncode == 1, output
    assert "Traceback" not in output
    assert "]: ROS cannot be started: " in output.splitlines()[-1]
