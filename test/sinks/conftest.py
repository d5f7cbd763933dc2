# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The tests of sinks need the packages of the extra `sinks`."""

from __future__ import annotations

from importlib.util import find_spec

_PACKAGES = ("asyncua", "foxglove", "paho", "prometheus_client")
collect_ignore_glob = [] if all(map(find_spec, _PACKAGES)) else ["test_*.py"]
