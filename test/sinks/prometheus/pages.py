"""Pages of metrics: fetched over HTTP and read with the parser of prometheus-client."""

from __future__ import annotations

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]
"""Values by name and labels."""


def fetched(address: object, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        text: str = answer.read().decode()
        return text


def series(page: str) -> Series:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }


def value(found: Series, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]
