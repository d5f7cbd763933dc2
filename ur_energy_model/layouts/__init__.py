"""Layouts of PlotJuggler, Foxglove and rviz for the topics of one arm, without ROS."""
