"""The panels of the dashboard of Grafana: what each shows, as queries of the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ur_energy_model.sinks.prometheus import metrics
from ur_energy_model.sinks.prometheus.metrics import Metric

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
