"""The errors of this package: each contains its data and the remedy."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.terminal_text import one_line


class UrEnergyError(Exception):
    """Base class of the package's errors.

    The command line prints `str(error)` as one line and exits with `exit_code`; names of files and
    what files contain cannot control a terminal.
    """

    exit_code = 1

    def __str__(self) -> str:
        return one_line(super().__str__())


class InputError(UrEnergyError):
    """Invalid input.

    Attributes:
        source: file, bag or address.
        field: invalid field, column or key; None if the whole source is invalid.
        problem: what is wrong.
        remedy: what the user can do.
    """

    def __init__(
        self, source: str | Path, problem: str, remedy: str, *, field: str | None = None
    ) -> None:
        self.source = str(source)
        self.field = field
        self.problem = problem
        self.remedy = remedy
        place = self.source if field is None else f"{self.source}: {field}"
        super().__init__(" ".join(f"{place}: {problem}; {remedy}".split()))


class RobotFileError(InputError):
    """A robot file that is missing, malformed or physically impossible."""


class RecordingError(InputError):
    """A bag or CSV recording that cannot be read or used."""


class IncompleteRecordingError(RecordingError):
    """A bag that holds less than was asked for; what it holds is readable."""

    exit_code = 3


class MissingFieldError(RecordingError):
    """A recording without a telemetry field that the requested step needs."""


class WrongRobotError(InputError):
    """A recording, model or controller of another robot than the requested one."""


class ModelFileError(InputError):
    """A model file that cannot be used."""


class TrajectoryFileError(InputError):
    """A trajectory file that cannot be used."""


class IdentificationError(UrEnergyError):
    """Data from which the requested parameters cannot be identified."""


class ControllerError(UrEnergyError):
    """A controller that cannot be reached, refuses a request or stops answering.

    Attributes:
        host: address of the controller.
    """

    def __init__(self, host: str, problem: str, remedy: str) -> None:
        self.host = host
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{host}: {problem}; {remedy}")


class ProtocolError(ControllerError):
    """Bytes from a controller that are not valid RTDE."""


class MotionRefusedError(UrEnergyError):
    """A motion that was not started, or was stopped, for safety."""
