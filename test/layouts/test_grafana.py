"""Dashboard of Grafana: queries of metrics that exist, panels that are placed, a sound schema."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest
import yaml

from ur_energy_model.layouts.grafana import COLUMNS, PANELS, grafana_dashboard, scrape_configuration
from ur_energy_model.sinks.options import PROMETHEUS_PORT
from ur_energy_model.sinks.prometheus_metrics import METRICS

BY_NAME = METRICS
SERIES = re.compile(r"(ur_energy_\w+)\{([^}]*)\}(\[[^\]]+\])?")
UNITS = {"watt", "joule", "s", "celsius", "percentunit", "short", "bool_yes_no"}
UNIT_OF_SUFFIX = {"_watts": "watt", "_joules": "joule", "_seconds": "s", "_celsius": "celsius"}


@pytest.fixture(scope="module")
def dashboard() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(grafana_dashboard())
    return content


def expressions(dashboard: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [(target["expr"], panel) for panel in dashboard["panels"] for target in panel["targets"]]


def test_every_query_is_of_metrics_and_labels_that_exist(dashboard: dict[str, Any]) -> None:
    for expression, _ in expressions(dashboard):
        found = SERIES.findall(expression)
        assert len(found) == expression.count("ur_energy_") > 0, expression
        for name, labels, span in found:
            metric = BY_NAME[name]
            assert set(re.findall(r"(\w+)=~?", labels)) <= set(metric.labels)
            assert 'arm=~"$arm"' in labels
            # Ranges are for counters; gauges are averaged.
            assert not span or metric.is_counter or "avg_over_time" in expression
        assert expression.count("(") == expression.count(")")


def test_legends_are_labels_of_the_metrics(dashboard: dict[str, Any]) -> None:
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            (name, *_), *_ = SERIES.findall(target["expr"])
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) == set(
                BY_NAME[name].labels
            )


def test_units_are_those_of_the_metrics(dashboard: dict[str, Any]) -> None:
    for expression, panel in expressions(dashboard):
        unit = panel["fieldConfig"]["defaults"]["unit"]
        assert unit in UNITS
        ((name, _, _), *others) = SERIES.findall(expression)
        base = name.removesuffix("_total")
        expected = next((u for end, u in UNIT_OF_SUFFIX.items() if base.endswith(end)), None)
        if expected is None or others:
            continue
        if "rate(" in expression:  # J/s
            expected = "watt"
        assert unit == expected, expression


def test_panels_have_numbers_and_places_of_their_own(dashboard: dict[str, Any]) -> None:
    each = dashboard["panels"]
    assert len({panel["id"] for panel in each}) == len(each) == len(PANELS)
    for panel in each:
        place = panel["gridPos"]
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= COLUMNS
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for one, other in combinations([panel["gridPos"] for panel in each], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart, (one, other)


def test_what_grafana_needs_to_import_it_is_there(dashboard: dict[str, Any]) -> None:
    assert dashboard["id"] is None, "Grafana refuses a number that it did not give"
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", dashboard["uid"])
    assert dashboard["schemaVersion"] >= 36
    names = [variable["name"] for variable in dashboard["templating"]["list"]]
    assert names == ["datasource", "arm"]
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(dashboard)))
    assert used - {"__range", "__rate_interval", "__all"} == set(names)
    for panel in dashboard["panels"]:
        assert panel["type"] in {"stat", "timeseries", "bargauge"}
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_the_scrape_configuration_names_the_default_port() -> None:
    (job,) = yaml.safe_load(scrape_configuration())["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{PROMETHEUS_PORT}"]}]
