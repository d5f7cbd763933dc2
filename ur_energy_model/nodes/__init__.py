"""The ROS 2 nodes; only this room knows ROS."""
