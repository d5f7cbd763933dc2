"""The layout files of one arm."""

from __future__ import annotations

from collections.abc import Callable

from ur_energy_model.layouts.arm_topics import ArmTopics
from ur_energy_model.layouts.foxglove import foxglove_layout
from ur_energy_model.layouts.grafana import grafana_dashboard, scrape_configuration
from ur_energy_model.layouts.plotjuggler import bag_layout, live_layout, server_layout
from ur_energy_model.layouts.rviz import rviz_layout

_LAYOUTS: dict[str, tuple[Callable[[ArmTopics], str], str]] = {
    "plotjuggler/energy.xml": (live_layout, "PlotJuggler, live topics"),
    "plotjuggler/energy_server.xml": (server_layout, "PlotJuggler, a Foxglove server"),
    "plotjuggler/energy_bag.xml": (bag_layout, "PlotJuggler, a bag"),
    "foxglove/energy.json": (foxglove_layout, "Foxglove, live topics or a bag"),
    "rviz/energy.rviz": (rviz_layout, "rviz, live topics"),
    "grafana/energy.json": (lambda _: grafana_dashboard(), "Grafana, metrics of Prometheus"),
    "prometheus/prometheus.yml": (lambda _: scrape_configuration(), "Prometheus"),
}

PURPOSES: dict[str, str] = {name: purpose for name, (_, purpose) in _LAYOUTS.items()}
"""What each file is for, by its path relative to the folder of the layouts."""


def layout_files(arm: ArmTopics) -> dict[str, str]:
    """Text of each file, by its path relative to the folder of the layouts."""
    return {name: layout(arm) for name, (layout, _) in _LAYOUTS.items()}
