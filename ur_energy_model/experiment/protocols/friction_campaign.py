"""Campaign of protocol s1: the same identification on the cold and on the warm arm."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.experiment.periodic_motion import PeriodicMotion
from ur_energy_model.experiment.protocols.outcome import Row
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.identification.dynamics.base_parameter_bags import (
    BagBaseParameters,
    identify_base_parameters,
)
from ur_energy_model.report.charts.chart import BarChart, Bars, Line, LineChart, Panel
from ur_energy_model.telemetry.bag.reader import iterate_bag
from ur_energy_model.telemetry.samples import concatenate
from ur_energy_model.typing import Array, Indices

WARM_UP = 1800.0
"""Time of highly dynamic motion between the two runs [s]."""
_QUICK_WARM_UP = 300.0
_PLACE = "Section 3.2"
_UNCHANGED = (("inertial", ""), ("motor inertia", "Ja"))
"""Groups of base parameters that temperature should not change, and their kinds."""


def campaign_rows(
    session: ProtocolRun,
    published: Mapping[str, Any],
    motion: PeriodicMotion,
    cold_bag: Path,
    cold: BagBaseParameters,
) -> list[Row]:
    """Warm the arm up, repeat the run, and compare the base parameters of both states.

    Args:
        session: run of the protocol.
        published: figures of the paper.
        motion: the exciting trajectory, which also warms the arm up.
        cold_bag: recording just after power-up.
        cold: base parameters from it.
    """
    seconds = _QUICK_WARM_UP if session.quick else WARM_UP
    warm_bag = session.record("excitation_warm", motion, warm_up=seconds)
    warm = identify_base_parameters([warm_bag], session.robot, progress=session.progress)
    session.picture(_friction_chart(cold, warm), "Fig. 4")
    session.picture(_unchanged_chart(cold, warm), "Fig. 4")
    differs = ("arm", "data", "method") if session.quick else ("arm", "data")
    rows = [
        Row(
            f"joint temperatures, {state} [degC]",
            published[key],
            _temperatures(bag),
            _PLACE,
            f"mean over the run, {when}",
            differs,
            0.15,
        )
        for state, key, bag, when in (
            ("cold", "temperatures_cold", cold_bag, "just after power-up"),
            ("warm", "temperatures_warm", warm_bag, f"after {seconds / 60:.0f} min of motion"),
        )
    ]
    rows += _friction_rows(published, cold, warm, differs)
    return rows + _unchanged_rows(cold, warm, differs)


def _friction_rows(
    published: Mapping[str, Any],
    cold: BagBaseParameters,
    warm: BagBaseParameters,
    differs: tuple[str, ...],
) -> list[Row]:
    """Two-state friction table."""
    rows = []
    for name, kind, unit in (("Coulomb", "fc", "N m"), ("viscous", "fv", "N m s/rad")):
        own = _group(cold, kind)
        states = {"cold": cold.parameters, "warm": warm.parameters}
        rows += [
            Row(
                f"{name} friction by joint, {state} [{unit}]",
                None,
                each.values[own],
                "Fig. 4",
                "base parameters by weighted least squares; the paper shows bars only",
                differs,
            )
            for state, each in states.items()
        ]
        change = 100 * (warm.parameters.values[own] / cold.parameters.values[own] - 1)
        viscous = kind == "fv"
        largest = float(change.min())
        rows.append(
            Row(
                f"change of {name} friction by joint, warm over cold [%]",
                published["viscous_friction_change"] if viscous else None,
                change,
                _PLACE if viscous else "Fig. 4",
                "warm over cold minus one",
                differs,
                judged=f"see text: falls by up to {-largest:.0f} %; another {' and '.join(differs)}"
                if viscous and largest < 0
                else "",
            )
        )
    return rows


def _unchanged_rows(
    cold: BagBaseParameters, warm: BagBaseParameters, differs: tuple[str, ...]
) -> list[Row]:
    """Parameters that temperature should not change."""
    rows = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        first, second = cold.parameters, warm.parameters
        change = second.values[own] - first.values[own]
        size = float(np.linalg.norm(change) / np.linalg.norm(first.values[own]))
        std = np.hypot(first.std[own], second.std[own])
        within = float(np.mean(np.abs(change) <= 2 * std))
        rows.append(
            Row(
                f"change of {len(own)} {name} base parameters, warm against cold",
                "nearly the same",
                size,
                "Fig. 4",
                "norm of the difference over that of the cold values",
                differs,
                judged=f"{'agrees' if size < 0.1 else 'differs'}: {100 * within:.0f} % of them are "
                "within two standard deviations",
            )
        )
    return rows


def _group(base: BagBaseParameters, kind: str) -> Indices:
    """Indices of the base parameters of a group; kind "" stands for the inertial ones."""
    regrouping = base.parameters.regrouping
    own = [regrouping.names[column].split("_")[0] for column in regrouping.base]
    drives = {"fc", "fv", "Ja"}
    return np.flatnonzero([name == kind or (not kind and name not in drives) for name in own])


def _temperatures(bag: Path) -> Array:
    """Mean joint temperatures of a recording [n], degC."""
    samples = concatenate(list(iterate_bag(bag, ("joint_temperatures",))))
    return np.asarray(samples["joint_temperatures"].mean(axis=0))


def _friction_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> BarChart:
    """Friction of both states as bars."""
    own = np.concatenate([_group(cold, "fc"), _group(cold, "fv")])
    names = cold.parameters.regrouping.names
    columns = cold.parameters.regrouping.base[own]
    title = "Friction of the cold and the warm arm (fc in N m, fv in N m s/rad)"
    return BarChart(
        key="s1_cold_and_warm",
        title=title,
        caption="",
        y_label="N m, N m s/rad",
        categories=tuple(names[column] for column in columns),
        bars=(
            Bars("cold", cold.parameters.values[own]),
            Bars("warm", warm.parameters.values[own], role="aside"),
        ),
    )


def _unchanged_chart(cold: BagBaseParameters, warm: BagBaseParameters) -> LineChart:
    """The other base parameters of both states."""
    panels = []
    for name, kind in _UNCHANGED:
        own = _group(cold, kind)
        number = np.arange(1, len(own) + 1, dtype=float)
        lines = (
            Line("cold", number, cold.parameters.values[own], role="measured"),
            Line("warm", number, warm.parameters.values[own], joint=1),
        )
        panels.append(Panel(f"{len(own)} {name} parameters", lines))
    title = "Inertial base parameters of the cold and the warm arm (kg m², kg m)"
    return LineChart(
        key="s1_inertial_cold_and_warm",
        title=title,
        caption="",
        x_label="number of the base parameter",
        y_label="",
        panels=tuple(panels),
        columns=1,
    )
