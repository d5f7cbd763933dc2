# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Answers to planned trajectories: energy, the same for less, and the measured energy."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live import LiveEstimator
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.energy.plan_follower import (
    LARGEST_TOLERANCE,
    MOST_PLANS,
    PlanFollower,
)
from ur_energy_model.energy.powers import Channels
from ur_energy_model.energy.prediction import PlanEnergy, predict_energy
from ur_energy_model.energy.snapshot import Snapshot
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.model.dynamics import ArmDynamics
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.nodes.plan_messages import (
    LARGEST_MESSAGE,
    check_size,
    header_of,
    joint_trajectory,
    plan_of,
    read_plan,
)
from ur_energy_model.rooms import extensions
from ur_energy_model.trajectory.plan import Plan
from ur_energy_model.trajectory.plan_check import checked_plan
from ur_energy_model.typing import Array


@dataclass(frozen=True)
class PlanAnswer:
    """Results on a plan so far; replaced as a whole when there are more.

    Attributes:
        header: header of the plan.
        refused: why it cannot be used; empty if it can.
        changed: what was corrected before the prediction, and why; empty if nothing.
        begins_away: statement that the plan begins elsewhere than the arm is; empty if it
            begins there.
        energy: energy that is predicted for the plan as it is; None if it is refused.
        optimized: the same path and duration for less energy; None if not (yet) found.
        optimized_energy: energy that is predicted for `optimized`.
        not_optimized: why there is no `optimized`; empty if there is, or not yet.
        measured: energy of its motion; None if not (yet) measured.
        channels: channels of the measurement.
        not_measured: why there is no measurement; empty if there is one, or not yet.
    """

    header: Header
    refused: str = ""
    changed: str = ""
    begins_away: str = ""
    energy: PlanEnergy | None = None
    optimized: JointTrajectory | None = None
    optimized_energy: PlanEnergy | None = None
    not_optimized: str = ""
    measured: MeterReading | None = None
    channels: Channels | None = None
    not_measured: str = ""

    @property
    def stamp(self) -> str:
        """Stamp of the plan as `seconds.nanoseconds`."""
        return f"{self.header.stamp.sec}.{self.header.stamp.nanosec:09d}"


START_TOLERANCE = LARGEST_TOLERANCE
"""Distance of a joint from the first point of a plan that is reported [rad]: a motion
that begins farther away is not taken for the motion of the plan, and not measured."""
MOST_WAITING = 2 * LARGEST_MESSAGE
"""Most bytes of the plans that wait."""


class PlanOptimizer(Protocol):
    """Finds the same motion for less energy; provided by extensions of "plans"."""

    def __call__(
        self,
        model: EnergyModel,
        plan: Plan,
        *,
        dynamics: ArmDynamics,
        temperature: Array | None,
    ) -> Plan:
        """The points of a motion with the path, stops and duration of a plan.

        Args:
            model: model of the arm in its session.
            plan: checked; positions [k, n] in rad at times [k] in s.
            dynamics: dynamics of the arm in its setup.
            temperature: temperatures of the joints [n], degC; None if unknown.

        Raises:
            UrEnergyError: the plan cannot be optimized.
        """


@dataclass(frozen=True)
class _ArmNow:
    """The data of an arm for a prediction: copied under the lock, then used without it.

    Attributes:
        model: model of the arm in its session.
        dynamics: dynamics of the arm in its setup.
        q: joint positions [n], rad; None before the first sample.
        temperature: temperatures of the joints [n], degC; None if unknown.
        speed_scaling: speed scaling of the controller, 1 for full speed.
    """

    model: EnergyModel
    dynamics: ArmDynamics
    q: Array | None
    temperature: Array | None
    speed_scaling: float

    @classmethod
    def of(cls, estimator: LiveEstimator) -> _ArmNow:
        """The arm of an estimator; its lock is held."""
        snapshot = estimator.snapshot("plan")
        calculator = estimator.calculator
        now = calculator.conditions
        model = calculator.model_in_session()
        return cls(
            model=model,
            dynamics=model.dynamics(robot=calculator.robot, setup=now.setup),
            q=None if snapshot is None else snapshot.q,
            temperature=now.temperature,
            speed_scaling=now.speed_scaling,
        )

    def energy_of(self, plan: Plan) -> PlanEnergy:
        """Predicted energy of a plan."""
        return predict_energy(
            self.model,
            plan,
            dynamics=self.dynamics,
            temperature=self.temperature,
            speed_scaling=self.speed_scaling,
        )


class _WaitingPlan(NamedTuple):
    """A plan that is not answered yet.

    Attributes:
        message: serialized JointTrajectory.
        estimator: estimator of the arm.
        since: time of the last snapshot when the plan came [s], from which on its motion
            may begin; None before the first snapshot.
    """

    message: bytes
    estimator: LiveEstimator
    since: float | None


def _at_speed(plan: Plan, scale: float) -> Plan:
    """A plan that begins at 0 s, with the times of its execution by the controller.

    Args:
        plan: plan with its planned times.
        scale: speed scaling of the controller, 1 for full speed.
    """
    return replace(
        plan,
        time=(plan.time - plan.time[0]) / scale,
        qd=None if plan.qd is None else plan.qd * scale,
        qdd=None if plan.qdd is None else plan.qdd * scale**2,
    )


class PlanPredictions:
    """Predicts and lowers the energy of plans in a thread, and measures their motions.

    Plans are answered one after the other, which takes seconds for a plan of an hour:
    first with the energy or a refusal, then with the same motion for less if no newer
    plan has come.

    Args:
        joints: names of the arm's joints, with their prefix [n].
        lock: guards the estimator against the thread that reads the samples.
        on_answer: called with each answer, and again with all that is found out later.
        on_trajectory: called with trajectories that take less, and with an empty one as
            soon as a plan comes for which the last one does not stand.
    """

    def __init__(
        self,
        joints: tuple[str, ...],
        lock: threading.Lock,
        *,
        on_answer: Callable[[PlanAnswer], None],
        on_trajectory: Callable[[JointTrajectory], None],
    ) -> None:
        self._joints = joints
        self._lock = lock
        self._on_answer = on_answer
        self._on_trajectory = on_trajectory
        self._follower = PlanFollower()
        self._state = threading.Lock()
        # Guarded by the lock of the state: plans that wait, the thread that answers them,
        # and everything below.
        self._waiting: deque[_WaitingPlan] = deque()
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._offering = False  # whether the last trajectory that was published stands
        # Answers to the plans whose motions may be measured; the newest plan's is last.
        self._answers: list[PlanAnswer] = []

    def submit(self, message: bytes, estimator: LiveEstimator) -> None:
        """Predict a plan, in the thread of the predictions; returns at once.

        Args:
            message: serialized JointTrajectory, which begins where the arm is now.
            estimator: estimator of the arm.
        """
        with self._state:
            if self._stopped:
                return
            try:
                self._check_room(message)
            except InputError as error:
                self._give(PlanAnswer(header_of(message), refused=str(error)))
                return
            waiting = _WaitingPlan(message, estimator, self._follower.now)
            self._waiting.append(waiting)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="plan predictions", daemon=True
                )
                self._thread.start()

    def _check_room(self, message: bytes) -> None:
        """Refuse a plan that takes too much memory while it waits.

        Raises:
            InputError: it is too large, or too many others wait.
        """
        check_size(message)
        count = len(self._waiting)
        size = sum(len(each.message) for each in self._waiting)
        if count >= MOST_PLANS or size + len(message) > MOST_WAITING:
            problem = f"comes while {count} others wait"
            raise InputError("trajectory", problem, "send it after their answers")

    def stop(self) -> None:
        """Predict no more; a prediction that is being computed has no effect."""
        with self._state:
            self._stopped = True
            self._waiting.clear()

    def follow(self, snapshot: Snapshot) -> None:
        """Measure the motions of plans, and give the answers that this completes.

        Args:
            snapshot: powers and energies now.
        """
        with self._lock:
            verdicts = self._follower.update(snapshot)
        with self._state:
            for header, found in verdicts:
                place = self._place_of(header)
                if place is None or self._stopped:
                    continue
                answer = self._answers[place]
                if isinstance(found, str):
                    self._give(replace(answer, not_measured=found))
                    continue
                measured = replace(
                    answer, measured=found, channels=snapshot.channels, not_measured=""
                )
                self._give(measured)

    def _run(self) -> None:
        """Answer the plans that wait, one after the other, and end the thread."""
        while True:
            with self._state:
                if not self._waiting:
                    self._thread = None
                    return
                request = self._waiting.popleft()
            try:
                self._predict(request)
            except UrEnergyError as error:
                header = header_of(request.message)
                self._answer(PlanAnswer(header, refused=str(error)))

    def _predict(self, request: _WaitingPlan) -> None:
        """Answer a plan, of the arm as it is now, first with its energy, then optimized.

        Raises:
            UrEnergyError: the plan cannot be used.
        """
        trajectory = read_plan(request.message)
        with self._lock:
            arm = _ArmNow.of(request.estimator)
        plan = plan_of(trajectory, self._joints, arm.q)
        # A plan whose first point is later begins where the arm is, with the way to this
        # point.
        has_way = arm.q is not None and float(trajectory.time[0]) > 0.0
        elsewhere = ""
        if arm.q is not None:
            first = plan.q[1] if has_way else plan.q[0]
            elsewhere = self._distance(first, arm.q)
        try:
            plan, lines = checked_plan(plan, arm.dynamics.robot.max_acceleration)
            energy = arm.energy_of(plan)
        except InputError as error:
            if not (has_way and elsewhere):
                raise
            problem = f"its first point is {elsewhere}; {error.problem}"
            raise InputError(plan.source, problem, error.remedy) from error
        begins_away = ""
        if elsewhere and not has_way:
            begins_away = f"the plan begins {elsewhere}"
        answer = PlanAnswer(
            trajectory.header,
            energy=energy,
            changed="; ".join(lines),
            begins_away=begins_away,
        )
        with self._lock:
            expected = _at_speed(plan, arm.speed_scaling)
            self._follower.expect(answer.header, expected, request.since)
        self._answer(answer)
        try:
            points = self._optimized(plan, energy, arm)
        except UrEnergyError as error:
            self._answer(answer, not_optimized=str(error))
        else:
            found = joint_trajectory(points, self._joints, trajectory)
            better = arm.energy_of(points)
            self._answer(answer, optimized=found, optimized_energy=better)

    def _optimized(self, plan: Plan, energy: PlanEnergy, arm: _ArmNow) -> Plan:
        """The points of the same motion for less energy.

        Args:
            plan: checked plan.
            energy: energy that is predicted for the plan.
            arm: state of the arm when the prediction began.

        Raises:
            UrEnergyError: there is none, or a newer plan has come. The newer plan goes
                first, because optimizing takes seconds.
        """
        newer = InputError("trajectory", "gave way to a newer plan", "send it again")
        if self._waiting:
            raise newer
        # Loaded for the first plan only: slow to import, and most nodes never get one.
        found = extensions("plans")
        if not found:
            problem = "plans are predicted only: the package is without its optimization"
            raise InputError(plan.source, problem, "install the whole package")
        optimize: PlanOptimizer = found[0].load()
        points = optimize(
            arm.model, plan, dynamics=arm.dynamics, temperature=arm.temperature
        )
        if arm.energy_of(points).total >= energy.total:
            problem = "no timing within the limits takes less energy in this time"
            raise InputError(plan.source, problem, "give it more time")
        if self._waiting:
            raise newer
        return points

    def _distance(self, q: Array, here: Array) -> str:
        """Distance of a point of a plan from the arm, in words.

        Args:
            q: joint positions of the point [n], rad.
            here: joint positions of the arm [n], rad.

        Returns:
            Empty if all joints are within START_TOLERANCE.
        """
        ways = np.abs(q - here)
        farthest = int(np.argmax(ways))
        if ways[farthest] <= START_TOLERANCE:
            return ""
        return (
            f"{ways[farthest]:.2f} rad from where the arm is ({self._joints[farthest]})"
        )

    def _answer(self, answer: PlanAnswer, **found: Any) -> None:
        """Give an answer, unless the predictions were stopped.

        Args:
            answer: answer to a plan; results that were measured meanwhile are added.
            found: attributes that are new.
        """
        with self._state:
            if self._stopped:
                return
            place = self._place_of(answer.header)
            known = answer if place is None else self._answers[place]
            self._give(replace(known, **found))

    def _place_of(self, header: object) -> int | None:
        """Index of the answer to the plan with this header; None if it is not kept."""
        for place, answer in enumerate(self._answers):
            if answer.header is header:
                return place
        return None

    def _give(self, answer: PlanAnswer) -> None:
        """Hand an answer over; the answer to the newest plan is handed over last.

        Args:
            answer: replaces the earlier answer to the same plan.
        """
        place = self._place_of(answer.header)
        if place is not None:
            self._answers[place] = answer
        else:
            # Of earlier plans only the energies are needed: a trajectory takes much
            # memory.
            earlier = [
                replace(each, optimized=None) for each in self._answers[-MOST_PLANS:]
            ]
            self._answers = [*earlier, answer]
            if self._offering:
                self._offering = False
                self._on_trajectory(JointTrajectory(header=answer.header))
        self._on_answer(answer)
        newest = self._answers[-1]
        if newest is not answer:
            self._on_answer(newest)
        elif answer.optimized is not None and not self._offering:
            self._offering = True
            self._on_trajectory(answer.optimized)
