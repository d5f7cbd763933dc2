# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Layouts: curves exist in a bag of energies, with namespace and prefix; queries of Grafana."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import product
from typing import Any
from xml.etree import ElementTree as Xml

import numpy as np
import pytest
import yaml

from test.energy.known_arm import ROBOT, known_model, motion
from test.layouts.viewers import (
    foxglove_paths,
    foxglove_topics,
    foxglove_value,
    messages_of_bag,
    plotjuggler_curves,
    plotjuggler_series,
    plotjuggler_subscriptions,
)
from test.telemetry.bag.bag_files import write_bag
from ur_energy_model.energy.energy_bag import write_energy_bag
from ur_energy_model.errors import InputError
from ur_energy_model.files import config_file
from ur_energy_model.layouts.files import PURPOSES, SUBSCRIBER, ArmTopics, layout_files

JOINTS = tuple(ROBOT.joint_names)
ARM = ArmTopics(JOINTS)
FILES = layout_files(ARM)
LIVE, SERVER, BAG = (f"plotjuggler/energy{name}.xml" for name in ("", "_server", "_bag"))
CURVES = 20
COLUMNS = 24  # width of Grafana's grid


def test_viewers_find_every_curve_in_an_energy_bag(tmp_path: Any) -> None:
    """And both show the same: the index of a Foxglove path belongs to PlotJuggler's name."""
    telemetry = motion(3.0)
    stamp = 1_700_000_000_000_000_000 + np.arange(len(telemetry)) * 2_000_000
    recording = write_bag(tmp_path / "recording", replace(telemetry, stamp=stamp))
    write_energy_bag(known_model(), recording, tmp_path / "energy")
    recorded = messages_of_bag(tmp_path / "energy")
    for name in (LIVE, SERVER, BAG):
        curves = plotjuggler_curves(FILES[name])
        assert len(curves) == CURVES
        assert curves <= plotjuggler_series(recorded)
    paths = foxglove_paths(FILES["foxglove/energy.json"])
    assert len(paths) == CURVES
    assert all(np.isfinite(foxglove_value(recorded, path)) for path in paths)
    found = {
        recorded[ARM.energies].name[int(path[:-1].partition("[")[2])] for path in paths
    }
    assert found == {curve.name for curves in ARM.plots().values() for curve in curves}


def test_namespace_and_prefix_are_in_every_name() -> None:
    for namespace in ("cell1", "/cell1", "cell1/"):
        files = layout_files(ArmTopics(JOINTS, namespace, "left_"))
        assert plotjuggler_subscriptions(files[LIVE]) == ["/cell1/energy"]
        curves = plotjuggler_curves(files[LIVE])
        assert curves == plotjuggler_curves(files[BAG])
        assert "/cell1/energy/left_elbow_joint/velocity" in curves
        assert all(curve.startswith("/cell1/energy/") for curve in curves)
    foxglove = files["foxglove/energy.json"]
    assert all(path.startswith("/cell1/energy.") for path in foxglove_paths(foxglove))
    own = {
        f"/cell1/{name}"
        for name in ("energy/markers", "energy/summary", "robot_description")
    }
    assert foxglove_topics(foxglove) == own | {"/diagnostics"}
    manager = yaml.safe_load(files["rviz/energy.rviz"])["Visualization Manager"]
    assert manager["Displays"][2]["Topic"]["Value"] == "/cell1/energy/markers"
    assert "/energy/<&elbow_joint/velocity" in plotjuggler_curves(
        layout_files(ArmTopics(JOINTS, "", "<&"))[LIVE]
    )
    for namespace in ("1cell", "a//b", "a b", "ä", "cell;x", 'cell"'):
        with pytest.raises(InputError, match="--namespace"):
            ArmTopics(JOINTS, namespace)


def test_subscriptions_of_plotjuggler_and_files_of_the_package() -> None:
    """It takes false and zero, not its defaults, for settings that are missing."""
    from ur_energy_model.sinks.foxglove.room import FOXGLOVE_PORT

    assert set(FILES) == set(PURPOSES)
    for name, content in FILES.items():
        assert config_file(*name.split("/")).read_text() == content
    roots = {name: Xml.fromstring(FILES[name]) for name in (LIVE, SERVER)}
    (plugin,) = roots[LIVE].iter("plugin")
    settings = {child.tag: child.attrib["value"] for child in plugin}
    assert settings == {**SUBSCRIBER, "selected_topics": "/energy"}
    assert int(settings["max_array_size"]) > 0
    (client,) = roots[SERVER].iter("foxglove_client")
    assert (client.attrib["address"], int(client.attrib["port"])) == (
        "127.0.0.1",
        FOXGLOVE_PORT,
    )
    assert [topic.attrib["name"] for topic in client.iter("topic")] == ["/energy"]


# The dashboard of Grafana.

DASHBOARD = json.loads(FILES["grafana/energy.json"])
SERIES = re.compile(r"(ur_energy_\w+)\{([^}]*)\}(\[[^\]]+\])?")
UNITS = {"watt", "joule", "s", "celsius", "percentunit", "short", "bool_yes_no"}
UNIT_OF_SUFFIX = {
    "_watts": "watt",
    "_joules": "joule",
    "_seconds": "s",
    "_celsius": "celsius",
}


def test_queries_of_grafana_are_of_metrics_labels_and_units_that_exist() -> None:
    from ur_energy_model.sinks.prometheus.sink import METRICS

    for panel in DASHBOARD["panels"]:
        unit = panel["fieldConfig"]["defaults"]["unit"]
        assert unit in UNITS
        for target in panel["targets"]:
            expression = target["expr"]
            found = SERIES.findall(expression)
            assert len(found) == expression.count("ur_energy_") > 0, expression
            assert expression.count("(") == expression.count(")")
            for name, labels, span in found:
                assert set(re.findall(r"(\w+)=~?", labels)) <= set(METRICS[name].labels)
                assert 'arm=~"$arm"' in labels
                # Ranges are for counters; gauges are averaged.
                assert (
                    not span or METRICS[name].is_counter or "avg_over_time" in expression
                )
            name = found[0][0]
            legend = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert legend == set(METRICS[name].labels)
            base = name.removesuffix("_total")
            expected = next(
                (u for end, u in UNIT_OF_SUFFIX.items() if base.endswith(end)), unit
            )
            if len(found) == 1:  # a rate of energies is J/s
                assert unit == ("watt" if "rate(" in expression else expected), expression


def test_grafana_can_import_panels_that_do_not_overlap() -> None:
    from ur_energy_model.sinks.prometheus.room import PROMETHEUS_PORT

    assert DASHBOARD["id"] is None, "Grafana refuses a number that it did not give"
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", DASHBOARD["uid"])
    names = [variable["name"] for variable in DASHBOARD["templating"]["list"]]
    assert names == ["datasource", "arm"]
    used = set(re.findall(r"\$\{?(\w+)\}?", json.dumps(DASHBOARD)))
    assert used - {"__range", "__rate_interval", "__all"} == set(names)
    cells: set[tuple[int, ...]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        taken = set(
            product(
                *(range(place[k], place[k] + place[size]) for k, size in ("xw", "yh"))
            )
        )
        assert max(x for x, _ in taken) < COLUMNS
        assert not cells & taken
        cells |= taken
        assert panel["type"] in {"stat", "timeseries", "bargauge"}
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])
    (job,) = yaml.safe_load(FILES["prometheus/prometheus.yml"])["scrape_configs"]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{PROMETHEUS_PORT}"]}]
