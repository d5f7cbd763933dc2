"""EstimatorLines: what an operator needs to know of a running estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.live.source_reader import SourceReader
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.nodes.terminal.clock_lines import ClockLines
from ur_energy_model.nodes.terminal.connection_lines import ConnectionLines
from ur_energy_model.nodes.terminal.line import Level, Line, count
from ur_energy_model.nodes.terminal.model_line import model_line
from ur_energy_model.nodes.terminal.problem_lines import ProblemLines, RepeatedLines


class EstimatorLines:
    """Lines about source, model and counters.

    Args:
        value: returns the value of a parameter of the estimator by its name.

    Attributes:
        robot: name of the arm that the estimator expects; None before it is known.
    """

    def __init__(self, value: Callable[[str], Any]) -> None:
        self._value = value
        self.robot: str | None = None
        topic = value("source") == "joint_states"
        self._connection = ConnectionLines("joint_states" if topic else value("robot_ip"))
        self._counters = ProblemLines("the energy counters are saved again")
        self._log = ProblemLines("the cycle log is written again")
        self._history = ProblemLines("the history is written again", Level.WARN)
        self._model_file = ProblemLines("the model file can be used again", Level.WARN)
        self._models = RepeatedLines()
        self._bag = RepeatedLines()
        self._plans = RepeatedLines(Level.WARN)
        self._clock = ClockLines()
        self._notes: tuple[str | None, ...] = ()
        self._openings = 0
        self._end_told = self._robot_told = False

    def begin(self) -> list[Line]:
        """The line at the start: where the samples come from."""
        if self._value("source") == "bag":
            return [Line(Level.INFO, f"playing the bag {self._value('bag')}")]
        return self._connection.begin()

    def model(self, path: Path | None, model: EnergyModel) -> list[Line]:
        """The line about a model that was loaded; without a path it is a generic one."""
        line = model_line(path, model)
        return [Line(line.level, each.text) for each in self._models.happened(line.text)]

    def useless_plan(self, problem: str) -> list[Line]:
        """The line about a plan whose energy cannot be predicted, if it is due."""
        return self._plans.happened(f"no prediction: {problem}")

    def problems(
        self, model_file: str | None, counters: str | None, log: str | None, history: str | None
    ) -> list[Line]:
        """Lines due now about files that cannot be used or written, None for no problem."""
        if model_file is not None:
            model_file = f"keeping the old model: {model_file}"
        return [
            *self._model_file.update(model_file),
            *self._counters.update(counters),
            *self._log.update(log),
            *self._history.update(None if history is None else f"history: {history}"),
        ]

    def source(self, reader: SourceReader | None) -> list[Line]:
        """Lines due now about the source."""
        lines = self._clock.update()
        if reader is None:
            return lines
        if self._value("source") == "bag":
            lines += self._playback(reader)
        else:
            lines += self._connection.update(reader.link, reader.info)
        robot = None if reader.info is None else reader.info.robot
        if None not in (robot, self.robot) and robot != self.robot and not self._robot_told:
            self._robot_told = True
            text = f"the samples are of a {robot}, but the model is of a {self.robot}"
            lines.append(Line(Level.ERROR, text))
        return lines

    def arm(self, *notes: str | None) -> list[Line]:
        """Lines about counters or a model of another arm, once each time; None for nothing."""
        before, self._notes = self._notes, notes
        return [Line(Level.WARN, note) for note in notes if note is not None and note not in before]

    def end(
        self, reader: SourceReader | None, snapshot: Snapshot | None, problem: str | None
    ) -> list[Line]:
        """Lines at the end.

        Args:
            reader: that was stopped, None if there was none.
            snapshot: after the last sample, None before the first one.
            problem: why the counters could not be saved, None if they were.
        """
        lines = self._connection.end(None if reader is None else reader.link)
        if snapshot is None:
            return lines
        energy = float(snapshot.since_reset.net[snapshot.channels.arm["total"]])
        file = self._value("state_file")
        text = f"{energy:,.0f} J since reset"
        if problem is not None:
            lines.append(Line(Level.ERROR, f"the energy counters are not saved: {problem}; {text}"))
        elif file:
            lines.append(Line(Level.INFO, f"energy counters saved in {file}: {text}"))
        else:
            lines.append(Line(Level.INFO, f"energy counters end: {text} (state_file is empty)"))
        return lines

    def _playback(self, reader: SourceReader) -> list[Line]:
        bag, lines = self._value("bag"), list[Line]()
        for _ in range(max(1, self._openings), reader.attempts):
            lines += self._bag.happened(f"bag {bag} plays again, from its beginning")
        self._openings = reader.attempts
        if reader.ended and not self._end_told:
            self._end_told = True
            text = f"bag {bag} has ended after {count(reader.samples, 'sample')}"
            lines.append(Line(Level.INFO, f"{text}; the counters keep their values"))
        return lines
