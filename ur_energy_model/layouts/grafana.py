"""Dashboard of Grafana (JSON) for the metrics of `--prometheus`, and what Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from ur_energy_model.sinks.options import PROMETHEUS_PORT
from ur_energy_model.sinks.prometheus_metrics import INFO, METRICS

COLUMNS = 24
"""Width of Grafana's grid."""
_STACKED = {"fillOpacity": 40, "lineWidth": 1, "stacking": {"group": "A", "mode": "normal"}}
_LINES = {"fillOpacity": 0, "lineWidth": 1, "showPoints": "never"}
_BARS = {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0}


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
    custom: Mapping[str, Any] = field(default_factory=dict)
    description: str = ""


def _of(name: str) -> str:
    """The series of a metric of the chosen arms."""
    return f'{METRICS[f"ur_energy_{name}"].name}{{arm=~"$arm"}}'


def _gain(name: str, span: str = "$__range") -> str:
    return f"increase({_of(name)}[{span}])"


def _figure(title: str, unit: str, expression: str, *, over_range: bool = False) -> Panel:
    """A small panel with one number for each arm."""
    return Panel(title, "stat", unit, ((expression, _ARM),), COLUMNS // 6, 4, over_range)


_ARM, _JOINT, _STATE = "{{arm}}", "{{arm}} {{joint}}", "{{arm}} {{state}}"
_MECHANICAL, _ELECTRICAL = (
    _gain(f"joint_{kind}energy_joules_total") for kind in ("mechanical_", "")
)
_line = partial(Panel, kind="timeseries", custom=_LINES)
_range = partial(Panel, kind="bargauge", width=8, over_range=True)
PANELS = (
    _figure("Power", "watt", _of("total_power_watts")),
    _figure("Power at the bus", "watt", _of("bus_power_watts")),
    _figure("Energy in this time", "joule", _gain("total_energy_joules_total"), over_range=True),
    _figure("Last cycle", "joule", _of("cycle_energy_joules")),
    _figure("Connected", "bool_yes_no", _of("connected")),
    _figure("Samples lost in this time", "short", _gain("samples_lost_total"), over_range=True),
    _line(
        "Power of the arm: model and measured bus",
        unit="watt",
        queries=(
            (_of("total_power_watts"), "{{arm}} model"),
            (_of("bus_power_watts"), "{{arm}} bus"),
            (_of("standby_power_watts"), "{{arm}} standby"),
        ),
    ),
    _line(
        "Power of the joints",
        unit="watt",
        queries=((_of("joint_power_watts"), _JOINT),),
        description="A joint with negative power gives energy back to the rest of the arm.",
    ),
    _line(
        "Energy per hour",
        unit="joule",
        queries=((_gain("total_energy_joules_total", "1h"), _ARM),),
        custom=_BARS,
        description="Gain of the last hour at each moment.",
    ),
    _line(
        "Mean power by state",
        unit="watt",
        queries=((f"rate({_of('state_energy_joules_total')}[$__rate_interval])", _STATE),),
        custom=_STACKED,
    ),
    _range("Energy of the joints in this time", unit="joule", queries=((_ELECTRICAL, _JOINT),)),
    _range("Time by state", unit="s", queries=((_gain("state_seconds_total"), _STATE),)),
    _range(
        "Efficiency of the joints in this time",
        unit="percentunit",
        queries=((f"{_MECHANICAL} / ({_ELECTRICAL} > 0)", _JOINT),),
        description="Mechanical over electrical energy.",
    ),
    _line(
        "Temperature of the joints",
        unit="celsius",
        queries=((_of("joint_temperature_celsius"), _JOINT),),
        width=8,
    ),
    _line(
        "Model minus measured bus power",
        unit="watt",
        queries=((f"avg_over_time({_of('residual_power_watts')}[1m])", _ARM),),
        width=8,
        description="Mean of a minute. A drift means that the arm is no longer as modelled.",
    ),
    _line(
        "Energy of the cycles",
        unit="joule",
        queries=((_of("cycle_energy_joules"), _ARM),),
        width=8,
    ),
)
"""The panels, in reading order."""


SCHEMA = 39
"""Version of Grafana's dashboard schema (Grafana 11)."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SCRAPE_SECONDS = 5


def grafana_dashboard() -> str:
    """The dashboard, to be imported or provisioned."""
    arms = f"label_values({INFO}, arm)"
    choice_of_source = {
        "label": "Prometheus",
        "name": "datasource",
        "query": "prometheus",
        "type": "datasource",
    }
    choice_of_arm = {
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
        "datasource": SOURCE,
        "definition": arms,
        "includeAll": True,
        "label": "arm",
        "multi": True,
        "name": "arm",
        "query": {"query": arms, "refId": "arms"},
        "refresh": 2,
        "type": "query",
    }
    dashboard = {
        "annotations": {"list": []},
        "description": "Power and energy of robot arms, as ur_energy and its nodes serve them.",
        "editable": True,
        "graphTooltip": 1,
        "id": None,
        "links": [],
        "panels": list(_placed()),
        "refresh": f"{SCRAPE_SECONDS}s",
        "schemaVersion": SCHEMA,
        "tags": ["energy", "robot"],
        "templating": {"list": [choice_of_source, choice_of_arm]},
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


def _placed() -> Iterator[dict[str, Any]]:
    """Panels from left to right, in rows."""
    x = y = tallest = 0
    for number, panel in enumerate(PANELS, start=1):
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
