"""Answers to planned trajectories: energy, the same for less, and the measured energy."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.plan_follower import MOST_PLANS, PlanFollower
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.nodes.conversions import plan_of
from ur_energy_model.nodes.plan_answer import PlanAnswer, PlanRequest, header_of

LARGEST_MESSAGE = 8 << 20
"""Largest plan as a serialized message [bytes], some 40,000 points with all derivatives."""


class PlanPredictions:
    """Predicts and lowers the energy of plans in a thread, and measures that of their motions.

    Plans are answered one after the other, which takes seconds for a plan of an hour: first with
    the energy or a refusal, then with the same motion for less if no newer plan has come.

    Args:
        robot: description of the arm.
        joints: joint names of the arm, prefix included.
        lock: guards the estimator against the thread that reads the samples.
        on_answer: called with each answer, and again with all that is found out later.
        on_trajectory: called with trajectories that take less, and with an empty one as soon as
            a plan comes for which the last one does not stand.
    """

    def __init__(
        self,
        robot: RobotDescription,
        joints: tuple[str, ...],
        lock: threading.Lock,
        *,
        on_answer: Callable[[PlanAnswer], None],
        on_trajectory: Callable[[JointTrajectory], None],
    ) -> None:
        self._robot, self._joints, self._lock = robot, joints, lock
        self._on_answer, self._on_trajectory = on_answer, on_trajectory
        self._follower = PlanFollower()
        self._state = threading.Lock()
        self._waiting: deque[tuple[bytes, LiveEstimator, float | None]] = deque()
        self._thread: threading.Thread | None = None
        self._stopped = self._offering = False
        self._answers: list[PlanAnswer] = []
        """Of the plans whose motions may be measured, and of the newest one."""

    def submit(self, message: bytes, estimator: LiveEstimator) -> None:
        """Predict a plan, a serialized JointTrajectory that begins where the arm is now."""
        with self._state:
            if self._stopped:
                return
            problem = None
            if len(message) > LARGEST_MESSAGE:
                problem = f"is larger than {LARGEST_MESSAGE / 1e6:.0f} MB", "send fewer points"
            elif len(self._waiting) >= MOST_PLANS:
                problem = f"comes while {MOST_PLANS} others wait", "send it after their answers"
            if problem is not None:
                refused = str(InputError("trajectory", *problem))
                self._give(PlanAnswer(header_of(message), refused=refused))
                return
            self._waiting.append((message, estimator, self._follower.now))
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="plan predictions", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Predict no more; a prediction that is being computed has no effect."""
        with self._state:
            self._stopped = True
            self._waiting.clear()

    def follow(self, snapshot: Snapshot) -> None:
        """Measure the motions of plans; gives the answers that this completes."""
        with self._lock:
            verdicts = self._follower.update(snapshot)
        if not verdicts:
            return
        with self._state:
            for key, found in verdicts:
                answer = next((each for each in self._answers if each.header is key), None)
                if answer is None or self._stopped:
                    continue
                if isinstance(found, str):
                    self._give(replace(answer, not_measured=found))
                else:
                    done = replace(
                        answer, measured=found, channels=snapshot.channels, not_measured=""
                    )
                    self._give(done)

    def _run(self) -> None:
        while True:
            with self._state:
                if not self._waiting:
                    self._thread = None
                    return
                message, estimator, since = self._waiting.popleft()
            try:
                request = self._read(message, estimator)
                answer = PlanAnswer(request.trajectory.header, energy=request.energy())
                expected = request.expected()
            except UrEnergyError as error:
                self._answer(PlanAnswer(header_of(message), refused=str(error)))
                continue
            with self._lock:
                self._follower.expect(answer.header, expected, since)
            self._answer(answer)
            assert answer.energy is not None
            try:
                found = None if self._waiting else request.optimized(answer.energy)
                if found is None or self._waiting:
                    raise InputError("trajectory", "gave way to a newer plan", "send it again")
            except UrEnergyError as error:
                self._answer(answer, not_optimized=str(error))
            else:
                self._answer(answer, optimized=found[0], optimized_energy=found[1])

    def _answer(self, answer: PlanAnswer, **found: Any) -> None:
        """Give an answer, with what was found out since and meanwhile."""
        with self._state:
            if not self._stopped:
                known = next((a for a in self._answers if a.header is answer.header), answer)
                self._give(replace(known, **found))

    def _give(self, answer: PlanAnswer) -> None:
        """Hand an answer over; the newest plan's is the last one that is handed over."""
        place = [each.header is answer.header for each in self._answers]
        if any(place):
            self._answers[place.index(True)] = answer
        else:
            self._answers = [*self._answers[-MOST_PLANS:], answer]
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

    def _read(self, message: bytes, estimator: LiveEstimator) -> PlanRequest:
        """The plan of a message, and the arm as it is now.

        Raises:
            UrEnergyError: the plan cannot be used.
        """
        try:
            trajectory = deserialize_message(message, JointTrajectory)
        except Exception as error:  # rclpy has no public class for it
            raise InputError("trajectory", f"cannot be read ({error})", "send it again") from error
        with self._lock:
            snapshot = estimator.snapshot("plan")
            calculator = estimator.calculator
            now, model = calculator.conditions, calculator.model_in_session()
            dynamics = model.dynamics(robot=self._robot, setup=now.setup)
        start = None if snapshot is None else snapshot.q
        return PlanRequest(
            plan=plan_of(trajectory, self._joints, start),
            joints=self._joints,
            trajectory=trajectory,
            model=model,
            dynamics=dynamics,
            temperature=now.temperature,
            speed_scaling=now.speed_scaling,
        )
