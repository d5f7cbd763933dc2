"""Quality of service of the nodes' topics.

A new profile for each topic: parameters `qos_overrides.<topic>...` change the profile in place.
"""

from __future__ import annotations

from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions

OVERRIDES = QoSOverridingOptions.with_default_policies()
"""History, depth and reliability of each topic are parameters."""


def live() -> QoSProfile:
    """For live topics."""
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE, history=HistoryPolicy.KEEP_LAST, depth=10
    )


def latched() -> QoSProfile:
    """For topics whose last message late subscribers get."""
    return QoSProfile(
        reliability=ReliabilityPolicy.RELIABLE,
        history=HistoryPolicy.KEEP_LAST,
        depth=1,
        durability=DurabilityPolicy.TRANSIENT_LOCAL,
    )


def best_effort(depth: int) -> QoSProfile:
    """For subscriptions that match publishers of either reliability."""
    return QoSProfile(
        reliability=ReliabilityPolicy.BEST_EFFORT, history=HistoryPolicy.KEEP_LAST, depth=depth
    )
