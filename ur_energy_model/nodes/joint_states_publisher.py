"""JointStatesPublisher: joint_states of an arm, unless a driver publishes them."""

from __future__ import annotations

from collections.abc import Sequence

from rclpy.clock import Clock
from rclpy.lifecycle import LifecyclePublisher

from ur_energy_model.nodes.conversions import joint_state, time_message
from ur_energy_model.nodes.other_publishers import OtherPublishers
from ur_energy_model.nodes.subscribers import has_subscribers
from ur_energy_model.telemetry.decimation import Decimator
from ur_energy_model.telemetry.samples import Telemetry


class JointStatesPublisher:
    """Publishes samples at a rate, in any thread.

    Args:
        publisher: of sensor_msgs/JointState.
        others: reports whether another node publishes the joints.
        joints: joint names of the arm, prefix included.
        rate: publish rate [Hz].
        clock: of the node, for samples without a stamp.
    """

    def __init__(
        self,
        publisher: LifecyclePublisher,
        others: OtherPublishers,
        joints: Sequence[str],
        rate: float,
        clock: Clock,
    ) -> None:
        self._publisher, self._others, self._joints = publisher, others, joints
        self._due, self._clock = Decimator(rate), clock

    def publish(self, batch: Telemetry) -> None:
        """Publish the samples that are due, if they are wanted and no other node does."""
        if "actual_q" not in batch.columns:
            return
        for part in self._due.parts(batch.time)[0]:
            if (
                self._due.due(float(batch.time[part.stop - 1]))
                and self._others.alone
                and has_subscribers(self._publisher)
            ):
                self._publish(batch, part.stop - 1)

    def _publish(self, batch: Telemetry, row: int) -> None:
        columns = batch.columns
        stamp = self._clock.now().nanoseconds if batch.stamp is None else int(batch.stamp[row])
        self._others.note_own(stamp)
        qd, current = columns.get("actual_qd"), columns.get("actual_current")
        self._publisher.publish(
            joint_state(
                self._joints,
                time_message(stamp),
                columns["actual_q"][row],
                None if qd is None else qd[row],
                None if current is None else current[row],
            )
        )
