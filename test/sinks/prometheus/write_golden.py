"""The recorded page of metrics, which the tests compare with.

    python -m test.sinks.prometheus.write_golden

writes it anew, after a change of the metrics that is wanted.
"""

from __future__ import annotations

import json
from pathlib import Path

from test.sinks.live_readings import live_readings
from test.sinks.prometheus.pages import fetched, series
from ur_energy_model.sinks.options import Address
from ur_energy_model.sinks.prometheus import MetricsPage

GOLDEN = Path(__file__).with_name("golden.json")


def recorded(page: MetricsPage) -> dict[str, float]:
    """Every series of a known motion, by name and labels."""
    for reading in live_readings(2.5):
        page.deliver(reading)
    return {
        f"{name} {dict(sorted(labels))}": value
        for (name, labels), value in series(fetched(page.address)).items()
    }


def main() -> None:
    """Write the file."""
    page = MetricsPage(Address("127.0.0.1", 0))
    page.open()
    GOLDEN.write_text(json.dumps(recorded(page), indent=1, sort_keys=True) + "\n")
    page.close()


if __name__ == "__main__":
    main()
