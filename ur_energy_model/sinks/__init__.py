# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Where readings go: terminal, Foxglove, Prometheus, MQTT, OPC UA; without ROS."""
