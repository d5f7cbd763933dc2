# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layouts of PlotJuggler, Foxglove and rviz for the topics of one arm, without ROS."""
