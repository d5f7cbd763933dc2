"""The real Prometheus scrapes the page, and its answers are what was counted."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from test.sinks.live_readings import live_readings
from test.sinks.servers import free_port, needs_program, program
from test.sinks.waiting import until
from ur_energy_model.layouts.grafana import panels, scrape_configuration
from ur_energy_model.sinks import prometheus as prometheus_sink
from ur_energy_model.sinks.options import Address
from ur_energy_model.sinks.prometheus import MetricsPage

pytestmark = needs_program("prometheus")
JOINT = "shoulder_pan_joint"


class Prometheus:
    """A Prometheus that scrapes one page five times a second, with the shipped configuration."""

    def __init__(self, folder: Path, target: object) -> None:
        configuration = yaml.safe_load(scrape_configuration())
        configuration["global"]["scrape_interval"] = "200ms"
        configuration["scrape_configs"][0]["static_configs"] = [{"targets": [str(target)]}]
        (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration))
        self._address = f"127.0.0.1:{free_port()}"
        path = program("prometheus")
        assert path is not None
        self._process = subprocess.Popen(
            [
                path,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address={self._address}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Series of an instant query; nothing while it cannot be reached.

        A query that Prometheus refuses fails the test.
        """
        words = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(
                f"http://{self._address}/api/v1/query?{words}", timeout=20
            ) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
                return found
        except urllib.error.HTTPError as error:
            if error.code == 503:  # it is starting
                return []
            pytest.fail(f"{expression}: {error.read().decode()}")
        except OSError:
            return []

    def value(self, expression: str) -> float:
        """Value of the only series; NaN where there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if len(found) == 1 else float("nan")

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[MetricsPage]:
    monkeypatch.setattr(prometheus_sink, "SILENCE", 600.0)
    page = MetricsPage(Address("127.0.0.1", 0))
    page.open()
    yield page
    page.close()


def test_prometheus_scrapes_and_answers(page: MetricsPage, tmp_path: Path) -> None:
    readings = list(live_readings(2.0))
    page.deliver(readings[0])
    with closing(Prometheus(tmp_path, page.address)) as server:
        total = 'ur_energy_total_energy_joules_total{arm="arm-1"}'
        until(lambda: server.value(total) >= 0.0, 60.0)
        for reading in readings:
            page.deliver(reading)
        numbers = readings[-1].numbers()
        # The counter has the value of the topic, except for what is given back at present.
        joint = f'ur_energy_joint_energy_joules_total{{arm="arm-1", joint="{JOINT}"}}'
        until(lambda: server.value(total) == pytest.approx(numbers["energy/total/energy"]))
        assert server.value(joint) >= numbers[f"energy/{JOINT}/energy"] - 1e-9
        assert server.value('up{job="ur_energy"}') == 1.0
        (metadata,) = server.query("count({__name__=~'ur_energy_.+'})")
        assert float(metadata["value"][1]) > 30
        for panel in panels():
            for expression, _ in panel.queries:
                asked = expression.replace("$arm", "arm-1")
                asked = re.sub(r"\$__(range|rate_interval)", "1m", asked)
                until(partial(server.query, asked), 30.0)
