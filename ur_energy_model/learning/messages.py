"""What the process that learns and its parent send each other."""

from __future__ import annotations

from dataclasses import dataclass

from ur_energy_model.learning.history import Attempt, Change, Need
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction


@dataclass(frozen=True)
class BeginLearning:
    """Learn from now on about this arm, instead of any other.

    Attributes:
        run: number that reports about it carry.
        robot: description of the arm.
        model: that learning begins with.
        state: where learning continues, as a learner gave it; None to begin anew.
    """

    run: int
    robot: RobotDescription
    model: EnergyModel
    state: bytes | None


@dataclass(frozen=True)
class FinishLearning:
    """Send the state, then end."""


@dataclass(frozen=True)
class Progress:
    """Where learning is.

    Attributes:
        run: see BeginLearning.
        version: number of the model in use; 0 is the first one.
        model: the model in use if it is another one than in the last Progress, else None.
        learned_minutes: of the arm's work, over all its sessions.
        attempts: refits since the last Progress.
        changes: of the arm, noticed since the last Progress.
        needs: what ordinary work has not shown yet.
        friction: of the joints at present, over that of the model in use.
        left_out: samples left out so far because of the limit on computing time.
        cpu_share: mean share of a core that the process has used.
    """

    run: int
    version: int
    model: EnergyModel | None
    learned_minutes: float
    attempts: tuple[Attempt, ...]
    changes: tuple[Change, ...]
    needs: tuple[Need, ...]
    friction: SessionFriction
    left_out: int
    cpu_share: float


@dataclass(frozen=True)
class LearnerState:
    """All that a learner needs to continue after a restart.

    Attributes:
        run, content: see BeginLearning, `state` for the content.
    """

    run: int
    content: bytes


@dataclass(frozen=True)
class Trouble:
    """Something went wrong.

    Attributes:
        text: what, in words.
        fatal: whether the process ends.
    """

    text: str
    fatal: bool
