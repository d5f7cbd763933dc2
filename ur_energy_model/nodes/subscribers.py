"""Whether anybody listens to a publisher."""

from __future__ import annotations

from rclpy.publisher import Publisher


def has_subscribers(publisher: Publisher) -> bool:
    """Whether a topic has subscribers; False once a signal has shut ROS down."""
    try:
        return bool(publisher.get_subscription_count())
    except RuntimeError:  # rclpy's RCLError: the context is invalid
        return False
