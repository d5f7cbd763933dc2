"""Readings of a live estimator, and the actions on it that sinks may ask for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.energy_topics.statuses import interval_energies
from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.telemetry.arm_identity import arm_name
from ur_energy_model.telemetry.host_clock import HOST_CLOCK
from ur_energy_model.telemetry.samples import Telemetry
from ur_energy_model.telemetry.source import LinkStatus


@dataclass(frozen=True)
class About:
    """What a reading states beside the estimator's state.

    Attributes:
        batch: the last samples.
        link: state of the connection.
        model: the model in use, in words.
        joints: names of the joints, prefix included.
    """

    batch: Telemetry
    link: LinkStatus
    model: str
    joints: tuple[str, ...]


def estimator_reading(estimator: LiveEstimator, viewer: str, about: About) -> ArmReading | None:
    """The present reading; None before the first sample. The caller holds the estimator's lock.

    Args:
        estimator: of the arm.
        viewer: name of the caller; powers are means since its previous reading.
        about: what else the reading states.
    """
    snapshot = estimator.snapshot(viewer)
    if snapshot is None:
        return None
    calculator, stamp, info = estimator.calculator, about.batch.stamp, about.batch.info
    return ArmReading(
        arm=arm_name(replace(info, robot=info.robot or calculator.robot.name)),
        stamp=HOST_CLOCK.stamp() if stamp is None else int(stamp[-1]),
        joints=about.joints,
        snapshot=snapshot,
        link=about.link,
        positions=None if snapshot.q is None else calculator.joint_positions(snapshot.q),
        model=about.model,
        robot=calculator.robot,
    )


def estimator_actions(
    estimator: Callable[[], LiveEstimator], lock: threading.Lock, joints: tuple[str, ...] | None
) -> ArmActions:
    """Actions on an estimator.

    Args:
        estimator: returns it, or raises an error of this package while there is none.
        lock: guards it against the thread that reads the samples.
        joints: names of the joints, prefix included; None for the robot's own.
    """

    def reset(reason: str) -> None:
        known = estimator()
        with lock:
            known.reset(reason)

    def read_interval() -> dict[str, object]:
        known = estimator()
        with lock:
            passed = known.read_interval()
        return interval_energies(passed, known.channels, joints or known.channels.joints)

    return ArmActions(reset, read_interval)
