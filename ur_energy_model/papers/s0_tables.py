# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Rows of Tables V to VIII and section 5 of Clochiatti et al., Robotica 2024.

Each table is computed by the definitions of the paper, with the dynamic model that it
prints, and beside it by our model. Tables III and IV are in `s0_inertia`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.meter import efficiency
from ur_energy_model.identification.error_statistics import ErrorStatistics
from ur_energy_model.identification.evaluation import Metrics
from ur_energy_model.identification.filtered_motion import MOVING_SPEED
from ur_energy_model.identification.pipeline import Identification
from ur_energy_model.model.drives import motor_constant
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.papers.published import Paper, ResultRow, cell
from ur_energy_model.papers.s0_inertia import SIZES, printed_model, with_plain_inertia
from ur_energy_model.papers.s0_models import (
    CatalogueMotors,
    PublishedCurrentModel,
    PublishedSeries,
    fit_current_model,
    published_series,
    torque_errors,
)
from ur_energy_model.typing import Array, Mask

TESTS = ("A", "B")  # test motions of the paper; A is fitted, B validates
_VISCOUS = "k_v by joint [N m s/rad]"
_DIRECT = "T_dir by joint [N m]"
_REVERSE = "T_rev by joint [N m]"
_TORQUE_CONSTANT = "k_t by joint [N m/A]"
_CATALOGUE_TOLERANCE = 0.1
"""Share by which k_t may leave the range of the catalogue in the paper."""
_SECOND_DIFFERENCE = np.sqrt(6.0)
"""Standard deviation of second differences of white noise over the noise: 1, -2, 1."""


def recorded_rows(
    paper: Paper,
    model: EnergyModel,
    bags: Mapping[str, Path],
    simulated: bool,
    *,
    motors: CatalogueMotors | None = None,
) -> tuple[list[ResultRow], dict[str, PublishedSeries]]:
    """Tables V to VIII by the definitions of the paper.

    Args:
        paper: published values.
        model: model of the arm.
        bags: recordings by the name of the test; the current model is fitted to the first.
        simulated: whether the arm is simulated.
        motors: catalogue motors of eq. 23; None for an arm without, and without Table VIII.

    Returns:
        Rows, and the series of each test.

    Raises:
        UrEnergyError: a recording cannot be used.
    """
    first = next(iter(bags.values()))
    printed = printed_model(model, first)
    of_controller = with_plain_inertia(model, first)
    currents = fit_current_model(printed, first)
    derived_currents = fit_current_model(printed, first, reference=False)
    rows = friction_rows(paper, currents)
    by_test = {}
    for test, bag in bags.items():
        series = published_series(printed, bag, currents, motors, ours=model)
        derived = published_series(printed, bag, derived_currents, reference=False)
        by_printed = torque_errors(printed, bag)
        by_controller = torque_errors(of_controller, bag)
        rows += torque_rows(paper, test, by_printed, by_controller, simulated)
        rows += current_rows(paper, test, series, derived)
        if series.energies is not None:
            rows += _energy_rows(paper, "energy", test, *series.energies)
        by_test[test] = series
    return rows, by_test


def torque_rows(
    paper: Paper,
    test: str,
    torque: ErrorStatistics | None,
    by_controller: ErrorStatistics | None,
    simulated: bool,
) -> list[ResultRow]:
    """Table V for one test motion; a simulated controller has the model that is compared.

    Args:
        paper: published values.
        test: "A" or "B".
        torque: errors of the torque with links of cylinders, joint side [N m]; None where
            target_moment was not recorded, for no rows.
        by_controller: the same errors with the link tensors of the controller.
        simulated: whether the arm is simulated.
    """
    if torque is None or by_controller is None:
        return []
    evidence = not simulated
    return [
        paper.row("torque_mean", torque.mean, test=test, evidence=evidence),
        paper.row("torque_peak", torque.largest, test=test, evidence=evidence),
        paper.row("torque_rms", torque.rms, test=test, evidence=evidence),
        paper.row("torque_r2", torque.r2, test=test, evidence=evidence),
        paper.row("torque_rms_controller", by_controller.rms, test=test),
        paper.row("torque_r2_controller", by_controller.r2, test=test),
    ]


def friction_rows(paper: Paper, currents: PublishedCurrentModel) -> list[ResultRow]:
    """Table VI: constants of eq. 18, and k_t beside the range of the catalogue (sec. 5).

    Args:
        paper: published values.
        currents: fitted current model.
    """
    torque_constant = currents.torque_constant
    rows = [
        paper.row("friction", currents.viscous, name=_VISCOUS),
        paper.row("friction", currents.coulomb_direct, name=_DIRECT),
        paper.row("friction", currents.coulomb_reverse, name=_REVERSE),
        paper.row("friction", torque_constant, name=_TORQUE_CONSTANT),
    ]
    means: list[Any] = []
    for size in SIZES:
        own = torque_constant[size.joints]
        mean = float(own.mean()) if (own > 0.0).all() else "not identifiable"
        means.append(mean)
        rows.append(paper.row(f"torque_constant_{size.name}", mean))
    identifiable = all(isinstance(mean, float) for mean in means)
    both_sizes = means if identifiable else cell(means, "/")
    low, high = np.transpose(paper["k_t_ranges"])
    within = ((1 - _CATALOGUE_TOLERANCE) * low, (1 + _CATALOGUE_TOLERANCE) * high)
    return [*rows, paper.row("catalogue_k_t", both_sizes, within=within)]


def our_friction_rows(paper: Paper, model: EnergyModel) -> list[ResultRow]:
    """Our fit of the same friction law beside Table VI.

    Args:
        paper: published values.
        model: model of the arm with the friction law "power_flow".
    """

    def friction(name: str) -> Array:
        """A friction parameter of all joints [n], motor side; NaN where a law has none."""
        return np.array(
            [joint.friction.parameters.get(name, np.nan) for joint in model.joints]
        )

    torque_constant = np.array([joint.torque_constant for joint in model.joints])
    rows = [
        paper.row("friction_ours", friction("viscous"), name=_VISCOUS),
        paper.row("friction_ours", friction("coulomb_direct"), name=_DIRECT),
        paper.row("friction_ours", friction("coulomb_reverse"), name=_REVERSE),
        paper.row("friction_ours", torque_constant, name=_TORQUE_CONSTANT),
    ]
    for size in SIZES:
        mean = float(torque_constant[size.joints].mean())
        rows.append(paper.row(f"torque_constant_{size.name}_ours", mean))
    return rows


def current_rows(
    paper: Paper, test: str, series: PublishedSeries, derived: PublishedSeries
) -> list[ResultRow]:
    """Table VII for one test motion.

    Args:
        paper: published values.
        test: "A" or "B".
        series: measured and modelled currents, by reference accelerations.
        derived: measured and modelled currents, by accelerations that are derived from
            the speed.
    """
    current = _errors(series.measured, series.modelled)
    by_derived = _errors(derived.measured, derived.modelled)
    by_our_law = _errors(series.measured, series.own)
    rows = [
        paper.row("current_mean", current.mean, test=test),
        paper.row("current_peak", current.largest, test=test),
    ]
    for size in SIZES:
        limit = paper["current_limits"][size.name]
        rms = current.rms[size.joints]
        rows.append(
            paper.row(
                f"current_rms_{size.name}",
                rms,
                test=test,
                within=(0.0, limit),
                note=f"{rms.max() / limit:.1f} times the limit, see Errata",
            )
        )
    rows.append(paper.row("current_r2", current.r2, test=test))
    deviation = series.measured.std(axis=0)
    rows.append(paper.row("current_deviation", deviation, test=test))
    for name, part in _error_parts(series).items():
        rows.append(paper.row("current_part", part, test=test, part=name))
    rows.append(paper.row("current_rms_derived", by_derived.rms, test=test))
    rows.append(paper.row("current_rms_our_law", by_our_law.rms, test=test))
    return rows


def _errors(measured: Array, modelled: Array) -> ErrorStatistics:
    """Errors of series of n joints [samples, n]."""
    errors = ErrorStatistics(measured.shape[1])
    errors.accumulate(measured, modelled)
    return errors


def _error_parts(series: PublishedSeries) -> dict[str, Array]:
    """RMS error of the current [n], A, moving and at standstill, and its white noise.

    White noise is the part that neighbouring samples do not have in common; second
    differences of the current show it alone.
    """
    moving = np.abs(series.qd) > MOVING_SPEED
    square = np.square(series.modelled - series.measured)
    noise = np.diff(series.measured, 2, axis=0).std(axis=0) / _SECOND_DIFFERENCE
    return {
        "moving": _rms_of(square, moving),
        "at standstill": _rms_of(square, ~moving),
        "of white noise": np.asarray(noise),
    }


def _rms_of(square: Array, counted: Mask) -> Array:
    """Root of the mean of squares [samples, n] that count: [n]; NaN where none counts."""
    with np.errstate(invalid="ignore"):
        total = np.where(counted, square, 0.0).sum(axis=0)
        return np.asarray(np.sqrt(total / counted.sum(axis=0)))


def our_error_rows(
    paper: Paper,
    quantity: str,
    test: str,
    entries: Sequence[Mapping[str, float | None]] | None,
) -> list[ResultRow]:
    """RMS error and R2 of our model beside Tables V and VII.

    Args:
        paper: published values.
        quantity: "torque" or "current".
        test: "A" or "B".
        entries: metrics of each joint; None where the quantity was not recorded, for no
            rows.
    """
    if entries is None:
        return []
    rms = [entry["rms"] for entry in entries]
    r2 = [entry["r2"] for entry in entries]
    return [
        paper.row(f"{quantity}_rms_ours", rms, test=test),
        paper.row(f"{quantity}_r2_ours", r2, test=test),
    ]


def our_energy_rows(paper: Paper, test: str, own: EnergySummary) -> list[ResultRow]:
    """Table VIII by our power model, and the energy at the supply.

    Args:
        paper: published values.
        test: "A" or "B".
        own: energies of the test [J].
    """
    rows = _energy_rows(paper, "energy_ours", test, own.mechanical, own.electrical)
    measured = float("nan") if own.bus is None else own.bus
    return [*rows, paper.row("supply_energy", [own.model, measured], test=test)]


def _energy_rows(
    paper: Paper, key: str, test: str, mechanical: Array, electrical: Array
) -> list[ResultRow]:
    """Table VIII: energy (eq. 25-26) and efficiency of each joint, and of the arm.

    Args:
        paper: published values.
        key: key of the published row.
        test: "A" or "B".
        mechanical: mechanical energy of each joint [n], J.
        electrical: electrical energy of each joint [n], J.
    """
    arm_mechanical = float(mechanical.sum())
    arm_electrical = float(electrical.sum())
    arm = [arm_mechanical, arm_electrical, arm_mechanical / arm_electrical]
    values = {
        "mechanical energy by joint [J]": mechanical,
        "electrical energy by joint [J]": electrical,
        "efficiency by joint": efficiency(mechanical, electrical),
        "mechanical, electrical energy [J] and efficiency of the arm": arm,
    }
    return [paper.row(key, here, what=what, test=test) for what, here in values.items()]


def catalogue_rows(
    paper: Paper, catalogue: Identification, own: Identification
) -> list[ResultRow]:
    """Section 5: power at the supply with catalogue motors against the bus, beside our model.

    Args:
        paper: published values.
        catalogue: identification with the power model of the catalogue.
        own: identification with our power model.
    """
    joints = catalogue.model.joints
    motors = [
        motor_constant(joint.torque_constant, joint.winding_resistance)
        for joint in joints
    ]
    conversion = joints[0].torque_constant / joints[0].back_emf_constant
    rows = [paper.row("motor_constants", motors), paper.row("kt_over_kb", conversion)]
    by_test = {
        "A": (catalogue.fit[0], own.fit[0]),
        "B": (catalogue.validation[0], own.validation[0]),
    }
    for test, (by_catalogue, by_us) in by_test.items():
        rows += _supply_rows(paper, test, "catalogue", by_catalogue)
        rows += _supply_rows(paper, test, "ours", by_us)
    return rows


def _supply_rows(
    paper: Paper, test: str, label: str, metrics: Metrics
) -> list[ResultRow]:
    """RMSE [W] and energy error [%] of a power model, from motion and from currents.

    Args:
        paper: published values.
        test: "A" or "B".
        label: name of the power model.
        metrics: errors of the power model on the test.
    """
    rows = []
    for source, power in (
        ("motion", metrics.power_from_motion),
        ("measured currents", metrics.power),
    ):
        here: list[Any] = [None, None]
        if power:
            here = [power["rmse"], power["energy_error_percent"]]
        rows.append(
            paper.row("supply_power", here, source=source, label=label, test=test)
        )
    return rows
