"""The one error family: every error carries its data and tells the user what to do."""

from __future__ import annotations

from pathlib import Path


class UrEnergyError(Exception):
    """Base class of all errors raised on purpose by this package.

    The command line prints `str(error)` as its one line and exits with code 1.
    """


class InputError(UrEnergyError):
    """Input that cannot be used, with the place to look at and the remedy.

    Attributes:
        source: file, bag or address that was refused.
        field: the field, column or key at fault, or None where the whole source is.
        problem: what is wrong.
        remedy: what the user can do about it.
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
    """A robot description that is missing, malformed or physically impossible."""


class RecordingError(InputError):
    """A bag or CSV recording that cannot be read or is not what it claims to be."""


class MissingFieldError(RecordingError):
    """A recording lacks a telemetry field that the requested step needs."""


class WrongRobotError(InputError):
    """A recording, model or controller belongs to another robot than the one asked for."""


class ModelFileError(InputError):
    """A model.yaml that cannot be used as it is."""


class TrajectoryFileError(InputError):
    """A trajectory file that cannot be used as it is."""


class IdentificationError(UrEnergyError):
    """Data that was read, but from which the requested parameters cannot be identified."""


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
    """A motion that was not started, or was stopped, to keep robot and people safe."""
