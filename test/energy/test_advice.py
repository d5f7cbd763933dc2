# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Advice for less energy: empty where no room gives any."""

from __future__ import annotations

import pytest

from ur_energy_model.energy import advice
from ur_energy_model.energy.tariff import Tariff


def test_nothing_is_advised_without_a_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(advice, "extensions", lambda subject: ())
    nothing = advice.adviser().together(())
    assert nothing.as_json(Tariff()) == {}
    assert list(nothing.text_lines(Tariff(), named=True)) == []
    assert nothing.section(Tariff()) is None
