"""Energies of several recordings together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ur_energy_model.energy.arm_state import ArmState
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.typing import Array


def totals_json(summaries: Sequence[EnergySummary]) -> dict[str, Any]:
    """Sums over recordings of one model, in the form of `EnergySummary.as_json`.

    Standard deviations are summed too: the model's errors are the same in all recordings. The
    measured energy is None where any recording lacks it. There is no entry "session". A serial
    number that differs between the recordings is None.

    Args:
        summaries: of one recording or more.
    """
    bus = [summary.bus for summary in summaries]
    total = replace(
        summaries[0],
        mechanical=_sum(s.mechanical for s in summaries),
        electrical=_sum(s.electrical for s in summaries),
        electrical_std=_sum(s.electrical_std for s in summaries),
        duration=sum(s.duration for s in summaries),
        unaccounted=sum(s.unaccounted for s in summaries),
        refused=sum(s.refused for s in summaries),
        repeated=sum(s.repeated for s in summaries),
        electrical_total_std=sum(s.electrical_total_std for s in summaries),
        copper=_sum(s.copper for s in summaries),
        friction=_sum(s.friction for s in summaries),
        regenerated=_sum(s.regenerated for s in summaries),
        driver=sum(s.driver for s in summaries),
        standby=sum(s.standby for s in summaries),
        regeneration=sum(s.regeneration for s in summaries),
        supply=sum(s.supply for s in summaries),
        supply_std=sum(s.supply_std for s in summaries),
        bus=None if None in bus else sum(value for value in bus if value is not None),
        state_time={state: sum(s.state_time[state] for s in summaries) for state in ArmState},
        state_energy={state: sum(s.state_energy[state] for s in summaries) for state in ArmState},
        warnings=tuple(dict.fromkeys(line for s in summaries for line in s.warnings)),
        serials=common_serials([s.serials for s in summaries]),
    ).as_json()
    del total["session"]
    return total


def common_serials(serials: Sequence[Mapping[str, str | None]]) -> dict[str, str | None]:
    """The serial numbers that several recordings have in common, None where they differ."""
    found: dict[str, str | None] = {}
    for name in ("model", "recording"):
        values = {each.get(name) for each in serials}
        found[name] = values.pop() if len(values) == 1 else None
    return found


def _sum(arrays: Iterable[Array]) -> Array:
    return sum(arrays, start=0.0)  # type: ignore[arg-type]
