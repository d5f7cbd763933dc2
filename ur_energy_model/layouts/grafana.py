"""Dashboard of Grafana (JSON) for the metrics of `--prometheus`, and what Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from ur_energy_model.layouts.grafana_panels import COLUMNS, Panel, panels
from ur_energy_model.sinks.open_sinks import PROMETHEUS_PORT
from ur_energy_model.sinks.prometheus import metrics

SCHEMA = 39
"""Version of Grafana's dashboard schema (Grafana 11)."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCRAPE_SECONDS = 5


def grafana_dashboard() -> str:
    """The dashboard, to be imported or provisioned."""
    dashboard = {
        "annotations": {"list": []},
        "description": "Power and energy of robot arms, as ur_energy and its nodes serve them.",
        "editable": True,
        "graphTooltip": 1,
        "id": None,
        "links": [],
        "panels": list(_placed(panels())),
        "refresh": f"{SCRAPE_SECONDS}s",
        "schemaVersion": SCHEMA,
        "tags": ["energy", "robot"],
        "templating": {"list": [_choice_of_source(), _choice_of_arm()]},
        "time": {"from": "now-15m", "to": "now"},
        "timepicker": {},
        "timezone": "",
        "title": "Energy of robot arms",
        "uid": "ur-energy",
        "version": 1,
    }
    return json.dumps(dashboard, indent=2) + "\n"


def scrape_configuration() -> str:
    """A prometheus.yml that scrapes one `ur_energy live` or node on the same machine."""
    job = {
        "job_name": "ur_energy",
        "static_configs": [{"targets": [f"127.0.0.1:{PROMETHEUS_PORT}"]}],
    }
    content = {"global": {"scrape_interval": f"{SCRAPE_SECONDS}s"}, "scrape_configs": [job]}
    head = "# Prometheus for `--prometheus 127.0.0.1:9464`; docs/live.md describes it.\n---\n"
    return head + yaml.safe_dump(content, sort_keys=False)


def _placed(each: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """Panels from left to right, in rows."""
    x = y = tallest = 0
    for number, panel in enumerate(each, start=1):
        if x + panel.width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        yield _panel(panel, number, {"h": panel.height, "w": panel.width, "x": x, "y": y})
        x, tallest = x + panel.width, max(tallest, panel.height)


def _panel(panel: Panel, number: int, place: dict[str, int]) -> dict[str, Any]:
    options: dict[str, Any] = {"tooltip": {"mode": "multi", "sort": "desc"}}
    if panel.kind == "timeseries":
        options["legend"] = {"calcs": [], "displayMode": "list", "placement": "bottom"}
    else:
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    if panel.kind == "bargauge":
        options |= {"displayMode": "gradient", "orientation": "horizontal"}
    return {
        "datasource": SOURCE,
        "description": panel.description,
        "fieldConfig": {"defaults": {"custom": panel.custom, "unit": panel.unit}, "overrides": []},
        "gridPos": place,
        "id": number,
        "options": options,
        "targets": [
            {
                "datasource": SOURCE,
                "expr": expression,
                "instant": panel.over_range,
                "legendFormat": legend,
                "range": not panel.over_range,
                "refId": chr(ord("A") + k),
            }
            for k, (expression, legend) in enumerate(panel.queries)
        ],
        "title": panel.title,
        "type": panel.kind,
    }


def _choice_of_source() -> dict[str, Any]:
    return {
        "label": "Prometheus",
        "name": "datasource",
        "query": "prometheus",
        "type": "datasource",
    }


def _choice_of_arm() -> dict[str, Any]:
    query = f"label_values({metrics.INFO.name}, arm)"
    return {
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": SOURCE,
        "definition": query,
        "includeAll": True,
        "label": "arm",
        "multi": True,
        "name": "arm",
        "query": {"query": query, "refId": "arms"},
        "refresh": 2,
        "type": "query",
    }
