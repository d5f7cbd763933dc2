"""Answers to planned trajectories: energy, the same for less, and the measured energy."""

from __future__ import annotations

import threading
from collections.abc import Callable

from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory

from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy.live.plan_follower import PlanFollower
from ur_energy_model.energy.live.snapshot import Snapshot
from ur_energy_model.energy.meter import MeterReading
from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.nodes.conversions import plan_of
from ur_energy_model.nodes.plan_answer import PlanAnswer, PlanRequest

LARGEST_MESSAGE = 8 << 20
"""Largest plan as a serialized message [bytes], some 40,000 points with all derivatives."""


class PlanPredictions:
    """Predicts and lowers the energy of plans in a thread, and measures that of their motions.

    One plan is answered at a time, which takes seconds for a plan of an hour: first with its
    energy, then with the same motion for less. A plan that waits is replaced by a newer one.

    Args:
        robot: description of the arm.
        joints: joint names of the arm, prefix included.
        lock: guards the estimator against the thread that reads the samples.
        on_plan: called in the thread with each prediction, and again once it is optimized.
        on_problem: called with the error of a plan that cannot be used.
    """

    def __init__(
        self,
        robot: RobotDescription,
        joints: tuple[str, ...],
        lock: threading.Lock,
        *,
        on_plan: Callable[[PlanAnswer], None],
        on_problem: Callable[[UrEnergyError], None],
    ) -> None:
        self._robot, self._joints, self._lock = robot, joints, lock
        self._on_plan, self._on_problem = on_plan, on_problem
        self._follower = PlanFollower()
        self._state = threading.Lock()
        self._waiting: tuple[bytes, LiveEstimator] | None = None
        self._thread: threading.Thread | None = None
        self._stopped = False
        self._latest: PlanAnswer | None = None

    def submit(self, message: bytes, estimator: LiveEstimator) -> None:
        """Predict a plan, a serialized JointTrajectory that begins where the arm is now."""
        if len(message) > LARGEST_MESSAGE:
            limit = f"is larger than {LARGEST_MESSAGE / 1e6:.0f} MB"
            self._on_problem(InputError("trajectory", limit, "send fewer points"))
            return
        with self._state:
            self._waiting = (message, estimator)
            if self._thread is None and not self._stopped:
                self._thread = threading.Thread(
                    target=self._run, name="plan predictions", daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Predict no more; a prediction that is being computed has no effect."""
        with self._state:
            self._stopped, self._waiting = True, None

    def finished(self, snapshot: Snapshot) -> tuple[PlanAnswer, MeterReading] | None:
        """The plan and its measured energy when its motion has ended, else None."""
        with self._lock:
            done = self._follower.update(snapshot)
        if done is None:
            return None
        energy, measured = done
        latest = self._latest
        if latest is None or latest.energy is not energy:
            latest = PlanAnswer(energy)
        return latest, measured

    def _run(self) -> None:
        while True:
            with self._state:
                if self._waiting is None:
                    self._thread = None
                    return
                (message, estimator), self._waiting = self._waiting, None
            try:
                request = self._read(message, estimator)
                answer = PlanAnswer(request.energy())
            except UrEnergyError as error:
                with self._state:
                    if not self._stopped:
                        self._on_problem(error)
                continue
            if not self._answer(answer, first=True):
                return
            better = request.optimized(answer.energy)
            if better is not None and not self._answer(better, first=False):
                return

    def _answer(self, answer: PlanAnswer, *, first: bool) -> bool:
        """Hand an answer over; returns whether more are wanted."""
        with self._state:
            if self._stopped:
                return False
            if first:
                with self._lock:
                    self._follower.expect(answer.energy)
            self._latest = answer
            self._on_plan(answer)
        return True

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
