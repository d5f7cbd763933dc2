"""Rows of protocol s0: Table VIII of Clochiatti et al., Robotica 2024, and the catalogue motors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.experiment.protocols.outcome import Row
from ur_energy_model.identification.evaluation.evaluation import Metrics
from ur_energy_model.model.energy_model import EnergyModel


def energy_rows(test: str, catalogue: EnergySummary | None, own: EnergySummary) -> list[Row]:
    """Table VIII for one test motion: the catalogue power model of the paper, and ours."""
    rows = []
    if catalogue is not None:
        how = "eq. 23-26 with the catalogue motors, from the motion; the text has no numbers"
        rows += _energies(test, catalogue, how, ())
    rows += _energies(f"{test}, ours", own, "eq. 24-26 with our power model", ("method",))
    measured = float("nan") if own.bus is None else own.bus
    supply = [own.supply, measured] + ([] if catalogue is None else [catalogue.supply])
    rows.append(
        Row(
            f"energy at the supply, {test}: ours, measured, catalogue [J]",
            None,
            supply,
            "Section 5",
            "motors, drivers and standby; the paper did not measure it, and its standby here is "
            "the one fitted to the bus",
        )
    )
    return rows


def catalogue_rows(
    model: EnergyModel,
    metrics: Sequence[tuple[str, Metrics, Metrics]],
    published: Mapping[str, Any],
) -> list[Row]:
    """What the catalogue motors cost against the measured bus.

    Args:
        model: with the catalogue power model.
        metrics: test motion, METRICS of the catalogue model and of ours.
        published: figures of the paper.
    """
    joints = model.joints
    motors = [
        joint.torque_constant / np.sqrt(joint.winding_resistance) if joint.winding_resistance else 0
        for joint in joints
    ]
    ratio = float(joints[0].torque_constant / joints[0].back_emf_constant)
    rows = [
        Row(
            "k_m of the catalogue model by joint [N m/sqrt(W)]",
            published["motor_constants"],
            motors,
            "Section 5",
            "TBM2G-06826 and TBM2G-05008, assumed",
            tolerance=1e-3,
        ),
        Row(
            "k_t/k_b of the catalogue model",
            published["kt_over_kb"],
            ratio,
            "Section 5",
            "assumed for all motors",
            tolerance=1e-3,
        ),
    ]
    for test, theirs, ours in metrics:
        for label, entry in (("catalogue", theirs), ("ours", ours)):
            for power, how in (
                (entry.power_from_motion, "motion"),
                (entry.power, "measured currents"),
            ):
                rows.append(
                    Row(
                        f"power at the supply from {how}, {label}, {test}: RMSE [W], energy [%]",
                        None,
                        [
                            None if power is None else power[key]
                            for key in ("rmse", "energy_error_percent")
                        ],
                        "Section 5",
                        "against the measured bus, which the paper did not have",
                    )
                )
    return rows


def _energies(test: str, found: EnergySummary, how: str, differs: tuple[str, ...]) -> list[Row]:
    total_mechanical, total = float(found.mechanical.sum()), float(found.electrical.sum())
    return [
        Row(f"{figure}, {test}", None, here, "Table VIII", how, differs)
        for figure, here in (
            ("mechanical energy by joint [J]", found.mechanical),
            ("electrical energy by joint [J]", found.electrical),
            ("efficiency by joint", found.efficiency),
            (
                "mechanical, electrical energy [J] and efficiency of the arm",
                [total_mechanical, total, total_mechanical / total if total else float("nan")],
            ),
        )
    ]
