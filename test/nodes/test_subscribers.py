"""Whether anybody listens to a publisher."""

import rclpy
from rclpy.context import Context
from std_msgs.msg import String

from ur_energy_model.nodes.ros import has_subscribers


def test_nobody_listens_once_ros_is_shut_down(fresh_domain):
    context = Context()
    rclpy.init(context=context, domain_id=fresh_domain())
    node = rclpy.create_node("talker", context=context)
    publisher = node.create_publisher(String, "words", 1)
    node.create_subscription(String, "words", lambda _: None, 1)
    assert has_subscribers(publisher)
    rclpy.try_shutdown(context=context)
    assert not has_subscribers(publisher)
    node.destroy_node()
