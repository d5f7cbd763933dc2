"""Latency of the published total power."""

from __future__ import annotations

import pytest

from ur_energy_model.nodes import estimator_health
from ur_energy_model.nodes.estimator_health import EstimatorHealth


class StoppedClock:
    """A host clock that always returns the same time [ns]."""

    def __init__(self, now: int) -> None:
        self._now = now

    def stamp(self) -> int:
        return self._now

    def check(self) -> int:
        return 0


def test_latency_is_from_the_stamp_to_the_publication(monkeypatch: pytest.MonkeyPatch) -> None:
    health = EstimatorHealth("estimator")
    now = 1_700_000_000_000_000_000
    monkeypatch.setattr(estimator_health, "HOST_CLOCK", StoppedClock(now))
    for milliseconds in (1, 2, 3, 10):
        health.record_publication(now - milliseconds * 1_000_000)
    first, second = (
        {pair.key: pair.value for pair in health.statuses(None, None, None)()[0].values}
        for _ in range(2)
    )
    assert float(first["latency_p50_ms"]) == pytest.approx(2.5)
    assert float(first["latency_max_ms"]) == pytest.approx(10.0)
    assert "latency_p50_ms" not in second  # each report covers its own interval
