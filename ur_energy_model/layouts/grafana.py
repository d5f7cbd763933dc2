"""Dashboard of Grafana (JSON) for the metrics of `--prometheus`, and what Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from ur_energy_model.sinks import prometheus_metrics as metrics
from ur_energy_model.sinks.options import PROMETHEUS_PORT
from ur_energy_model.sinks.prometheus_metrics import Metric

# The panels of the dashboard of Grafana: what each shows, as queries of the metrics.

COLUMNS = 24
"""Width of Grafana's grid."""


@dataclass(frozen=True)
class Panel:
    """One panel.

    Attributes:
        title: for users.
        kind: of Grafana: stat, timeseries, bargauge.
        unit: of Grafana.
        queries: expression and legend of each query.
        width, height: in cells of the grid.
        over_range: whether each query gives one value for the whole time range.
        custom: further field settings, such as stacking.
        description: shown on request.
    """

    title: str
    kind: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    width: int = COLUMNS // 2
    height: int = 8
    over_range: bool = False
    custom: dict[str, Any] = field(default_factory=dict)
    description: str = ""


_STACKED = {"fillOpacity": 40, "lineWidth": 1, "stacking": {"group": "A", "mode": "normal"}}
_LINES = {"fillOpacity": 0, "lineWidth": 1, "showPoints": "never"}
_BARS = {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0}


def _of(metric: Metric) -> str:
    """The series of a metric of the chosen arms."""
    return f'{metric.name}{{arm=~"$arm"}}'


def _gain(metric: Metric, span: str = "$__range") -> str:
    return f"increase({_of(metric)}[{span}])"


def _figure(title: str, unit: str, expression: str, *, over_range: bool = False) -> Panel:
    """A small panel with one number for each arm."""
    queries = ((expression, "{{arm}}"),)
    return Panel(title, "stat", unit, queries, COLUMNS // 6, 4, over_range)


def panels() -> tuple[Panel, ...]:
    """The panels, in reading order."""
    joint, arm, state = "{{arm}} {{joint}}", "{{arm}}", "{{arm}} {{state}}"
    mechanical, electrical = _gain(metrics.JOINT_MECHANICAL_ENERGY), _gain(metrics.JOINT_ENERGY)
    return (
        _figure("Power", "watt", _of(metrics.TOTAL_POWER)),
        _figure("Power at the bus", "watt", _of(metrics.BUS_POWER)),
        _figure("Energy in this time", "joule", _gain(metrics.TOTAL_ENERGY), over_range=True),
        _figure("Last cycle", "joule", _of(metrics.CYCLE_ENERGY)),
        _figure("Connected", "bool_yes_no", _of(metrics.CONNECTED)),
        _figure("Samples lost in this time", "short", _gain(metrics.SAMPLES_LOST), over_range=True),
        Panel(
            "Power of the arm: model and measured bus",
            "timeseries",
            "watt",
            (
                (_of(metrics.TOTAL_POWER), "{{arm}} model"),
                (_of(metrics.BUS_POWER), "{{arm}} bus"),
                (_of(metrics.STANDBY_POWER), "{{arm}} standby"),
            ),
            custom=_LINES,
        ),
        Panel(
            "Power of the joints",
            "timeseries",
            "watt",
            ((_of(metrics.JOINT_POWER), joint),),
            custom=_LINES,
            description="A joint with negative power gives energy back to the rest of the arm.",
        ),
        Panel(
            "Energy per hour",
            "timeseries",
            "joule",
            ((_gain(metrics.TOTAL_ENERGY, "1h"), arm),),
            custom=_BARS,
            description="Gain of the last hour at each moment.",
        ),
        Panel(
            "Mean power by state",
            "timeseries",
            "watt",
            ((f"rate({_of(metrics.STATE_ENERGY)}[$__rate_interval])", state),),
            custom=_STACKED,
        ),
        Panel(
            "Energy of the joints in this time",
            "bargauge",
            "joule",
            ((_gain(metrics.JOINT_ENERGY), joint),),
            width=8,
            over_range=True,
        ),
        Panel(
            "Time by state",
            "bargauge",
            "s",
            ((_gain(metrics.STATE_TIME), state),),
            width=8,
            over_range=True,
        ),
        Panel(
            "Efficiency of the joints in this time",
            "bargauge",
            "percentunit",
            ((f"{mechanical} / ({electrical} > 0)", joint),),
            width=8,
            over_range=True,
            description="Mechanical over electrical energy.",
        ),
        Panel(
            "Temperature of the joints",
            "timeseries",
            "celsius",
            ((_of(metrics.JOINT_TEMPERATURE), joint),),
            width=8,
            custom=_LINES,
        ),
        Panel(
            "Model minus measured bus power",
            "timeseries",
            "watt",
            ((f"avg_over_time({_of(metrics.RESIDUAL_POWER)}[1m])", arm),),
            width=8,
            custom=_LINES,
            description="Mean of a minute. A drift means that the arm is no longer as modelled.",
        ),
        Panel(
            "Energy of the cycles",
            "timeseries",
            "joule",
            ((_of(metrics.CYCLE_ENERGY), arm),),
            width=8,
            custom=_LINES,
        ),
    )


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
