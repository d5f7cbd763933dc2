"""Dashboard of Grafana (JSON) for the metrics of `--prometheus`, and what Prometheus scrapes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
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


_ARM, _JOINT, _STATE = "{{arm}}", "{{arm}} {{joint}}", "{{arm}} {{state}}"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def _of(name: str) -> str:
    """The series of a metric of the chosen arms."""
    return f'{METRICS[f"ur_energy_{name}"].name}{{arm=~"$arm"}}'


def _gain(name: str, span: str = "$__range") -> str:
    return f"increase({_of(name)}[{span}])"


def _panel(
    title: str,
    unit: str,
    *queries: tuple[str, str],
    kind: str = "timeseries",
    width: int = COLUMNS // 2,
    custom: Mapping[str, Any] | None = None,
    over_range: bool = False,
    description: str = "",
) -> dict[str, Any]:
    """A panel without its place.

    Args:
        title: for users.
        unit: of Grafana.
        queries: expression and legend of each.
        kind: of Grafana: stat, timeseries, bargauge.
        width: in cells of the grid.
        custom: further field settings, such as stacking.
        over_range: whether each query gives one value for the whole time range.
        description: shown on request.
    """
    options: dict[str, Any] = {"tooltip": {"mode": "multi", "sort": "desc"}}
    if kind == "timeseries":
        options["legend"] = {"calcs": [], "displayMode": "list", "placement": "bottom"}
        custom = _LINES if custom is None else custom
    else:
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    if kind == "bargauge":
        options |= {"displayMode": "gradient", "orientation": "horizontal"}
    return {
        "datasource": SOURCE,
        "description": description,
        "fieldConfig": {"defaults": {"custom": custom or {}, "unit": unit}, "overrides": []},
        "gridPos": {"h": 4 if kind == "stat" else 8, "w": width},
        "id": 0,
        "options": options,
        "targets": [
            {
                "datasource": SOURCE,
                "expr": expression,
                "instant": over_range,
                "legendFormat": legend,
                "range": not over_range,
                "refId": chr(ord("A") + k),
            }
            for k, (expression, legend) in enumerate(queries)
        ],
        "title": title,
        "type": kind,
    }


_MECHANICAL, _ELECTRICAL = (
    _gain(f"joint_{kind}energy_joules_total") for kind in ("mechanical_", "")
)
_FIGURES = (
    ("Power", "watt", _of("total_power_watts"), False),
    ("Power at the bus", "watt", _of("bus_power_watts"), False),
    ("Energy in this time", "joule", _gain("total_energy_joules_total"), True),
    ("Last cycle", "joule", _of("cycle_energy_joules"), False),
    ("Connected", "bool_yes_no", _of("connected"), False),
    ("Samples lost in this time", "short", _gain("samples_lost_total"), True),
)
_range = partial(_panel, kind="bargauge", width=8, over_range=True)
PANELS = (
    *(
        _panel(title, unit, (query, _ARM), kind="stat", width=COLUMNS // 6, over_range=over_range)
        for title, unit, query, over_range in _FIGURES
    ),
    _panel(
        "Power of the arm: model and measured bus",
        "watt",
        (_of("total_power_watts"), "{{arm}} model"),
        (_of("bus_power_watts"), "{{arm}} bus"),
        (_of("standby_power_watts"), "{{arm}} standby"),
    ),
    _panel(
        "Power of the joints",
        "watt",
        (_of("joint_power_watts"), _JOINT),
        description="A joint with negative power gives energy back to the rest of the arm.",
    ),
    _panel(
        "Energy per hour",
        "joule",
        (_gain("total_energy_joules_total", "1h"), _ARM),
        custom=_BARS,
        description="Gain of the last hour at each moment.",
    ),
    _panel(
        "Mean power by state",
        "watt",
        (f"rate({_of('state_energy_joules_total')}[$__rate_interval])", _STATE),
        custom=_STACKED,
    ),
    _range("Energy of the joints in this time", "joule", (_ELECTRICAL, _JOINT)),
    _range("Time by state", "s", (_gain("state_seconds_total"), _STATE)),
    _range(
        "Efficiency of the joints in this time",
        "percentunit",
        (f"{_MECHANICAL} / ({_ELECTRICAL} > 0)", _JOINT),
        description="Mechanical over electrical energy.",
    ),
    _panel(
        "Temperature of the joints",
        "celsius",
        (_of("joint_temperature_celsius"), _JOINT),
        width=8,
    ),
    _panel(
        "Model minus measured bus power",
        "watt",
        (f"avg_over_time({_of('residual_power_watts')}[1m])", _ARM),
        width=8,
        description="Mean of a minute. A drift means that the arm is no longer as modelled.",
    ),
    _panel("Energy of the cycles", "joule", (_of("cycle_energy_joules"), _ARM), width=8),
)
"""The panels, in reading order."""


SCHEMA = 39
"""Version of Grafana's dashboard schema (Grafana 11)."""
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
        width, height = panel["gridPos"]["w"], panel["gridPos"]["h"]
        if x + width > COLUMNS:
            x, y, tallest = 0, y + tallest, 0
        yield {**panel, "id": number, "gridPos": {"h": height, "w": width, "x": x, "y": y}}
        x, tallest = x + width, max(tallest, height)
