# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The type of the arm: whether the samples belong to the type that a recording names.

Two kinds of samples depend on the type and on little else. target_moment is the
controller's own inverse dynamics: the rigid bodies of the right arm explain it almost
exactly, in some mounting and with some payload. actual_TCP_pose is the controller's own
kinematics: for the right arm one tool, fixed to the flange, explains every pose. Speeds
beyond the rated speeds exclude an arm. Motor currents are not used: in ordinary motion,
friction and an unknown payload may look like an arm of several times the weight (the
currents of a simulated UR10e at pick and place looked like an arm of a third of its weight).

The stated arm is contradicted only where another arm explains the samples clearly better,
in every respect. Samples that no arm explains (payload changed unnoticed, contact, other
units) contradict nothing, nor do samples that every arm explains (standstill, few poses).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ur_energy_model.consistency.arm_evidence import ArmEvidence
from ur_energy_model.consistency.arm_samples import FIELDS
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.consistency.sample_windows import SampleWindows
from ur_energy_model.model.robots import RobotDescription, load_robot
from ur_energy_model.telemetry.samples import RecordingInfo, Telemetry

FIRST_LOOK = 15.0  # time until a connected arm is first compared with the stated one [s]
LATER_LOOK = 3.0  # factor of the observed time between one comparison and the next
JOINTS = 6  # number of joints of Universal Robots' arms


class ArmTypeCheck:
    """Collects samples that show the type of the arm, from consecutive parts of one recording."""

    def __init__(self) -> None:
        self._windows = SampleWindows(FIELDS)
        self._info = RecordingInfo()
        self._evidence: dict[int, ArmEvidence] = {}  # fits of the samples, by joints

    def observe(self, part: Telemetry) -> None:
        """Add the next part."""
        if len(part):
            self._info = part.info
            self._windows.add(part)
            self._evidence.clear()

    def _evidence_for(self, dof: int) -> ArmEvidence:
        """Fits of the samples so far, for arms with so many joints."""
        if dof not in self._evidence:
            self._evidence[dof] = ArmEvidence(self._windows.windows(), dof)
        return self._evidence[dof]

    @property
    def seconds(self) -> float:
        """Time that was observed so far [s]."""
        return self._windows.seconds

    def contradictions(
        self,
        robot: RobotDescription,
        *,
        stated: str | None = None,
        remedy: str | None = None,
    ) -> tuple[Contradiction, ...]:
        """Evidence that the recording is of another arm than the stated one.

        Args:
            robot: the arm that is stated.
            stated: the statement, such as "imported as ur5e"; by default, the recording's.
            remedy: what to do, with {options} in place of the option that names the right
                arm.

        Returns:
            Nothing, or one contradiction, for which the recording is refused.
        """
        evidence = self._evidence_for(robot.dof)
        return _contradictions(evidence, self._info, robot, stated, remedy)

    def fitting_arms(self) -> tuple[str, ...]:
        """Names of the arms whose constants explain the samples; none where these do not decide.

        UR5e and UR7e, or UR10e and UR12e, have the same constants and are named together.
        """
        return self._evidence_for(JOINTS).only_arms()


def _contradictions(
    evidence: ArmEvidence,
    info: RecordingInfo,
    robot: RobotDescription,
    stated: str | None,
    remedy: str | None,
) -> tuple[Contradiction, ...]:
    """Evidence that samples are of another arm than the stated one.

    Args:
        evidence: fits of the samples.
        info: metadata of the recording.
        robot: the arm that is stated.
        stated: statement of the arm; None for the statement of the recording.
        remedy: remedy with {options} in place of the option that names the right arm; None
            to record or import again.

    Returns:
        Nothing, or one contradiction.
    """
    if not evidence.doubts(robot):
        return ()
    names = evidence.arms_better_than(robot)
    if not names:
        return ()
    if stated is None:
        stated = f"is named as a recording of a {robot.name}"
    if remedy is None:
        imported = "imported_from" in info.extra
        verb = "import" if imported else "record"
        remedy = f"{verb} it again with {{options}}"
    options = " or ".join(f"--robot {name}" for name in names)
    return (
        Contradiction(
            subject="robot",
            stated=stated,
            shown=f"its samples are those of a {' or '.join(names)}",
            evidence=evidence.words(robot, load_robot(names[0])),
            remedy=remedy.format(options=options),
            refused=True,
        ),
    )


class ArmTypeMonitor:
    """Compares a connected arm with the one that is stated, as soon as its samples decide.

    The comparison runs in a separate thread, so that it does not delay reading: after
    FIRST_LOOK, and then each time that LATER_LOOK times as much was observed.

    Args:
        robot: the arm that is stated.

    Attributes:
        contradiction: contradiction between the stated arm and the samples; None while
            none was found.
    """

    def __init__(self, robot: RobotDescription) -> None:
        self._robot = robot
        self._windows = SampleWindows(FIELDS)
        self._due = FIRST_LOOK
        self._thread: threading.Thread | None = None
        self.contradiction: Contradiction | None = None

    def observe(self, batch: Telemetry) -> None:
        """Add the next samples."""
        if self.contradiction is not None or not len(batch):
            return
        self._windows.add(batch)
        busy = self._thread is not None and self._thread.is_alive()
        if self._windows.seconds < self._due or busy:
            return
        self._due = LATER_LOOK * self._windows.seconds
        work = (self._windows.windows(), batch.info)
        self._thread = threading.Thread(
            target=self._compare, args=work, name="arm type", daemon=True
        )
        self._thread.start()

    def _compare(self, windows: Sequence[Telemetry], info: RecordingInfo) -> None:
        """Compare the stated arm with windows of samples, and keep a contradiction."""
        stated = f"the arm is stated to be a {self._robot.name}"
        evidence = ArmEvidence(windows, self._robot.dof)
        remedy = "state it with {options}"
        found = _contradictions(evidence, info, self._robot, stated, remedy)
        self.contradiction = found[0] if found else None

    def finish(self) -> Contradiction | None:
        """The contradiction by all samples, at the end of a recording.

        A comparison in progress is completed first.
        """
        if self._thread is not None:
            self._thread.join()
        if self.contradiction is None:
            self._compare(self._windows.windows(), RecordingInfo())
        return self.contradiction
