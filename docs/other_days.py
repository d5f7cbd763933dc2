"""Currents of a UR10e on other days beside plain least squares, for accuracy.md and its test."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.identification.evaluation import measure, read_for_comparison
from ur_energy_model.identification.pipeline import identify
from ur_energy_model.identification.signals import NarrowFilter
from ur_energy_model.model.energy_model import EnergyModel

Array = NDArray[np.float64]

RECORDINGS = (
    "ur10e_excitation_50s",
    "ur10e_excitation_unloaded_56s",
    "ur10e_other_days_2019_10_01",
    "ur10e_other_days_2019_12_23",
    "ur10e_other_days_2020_02_05",
    "ur10e_other_days_2020_02_06",
    "ur10e_point_to_point_57s",
)
"""Unloaded recordings of one UR10e, made within five months."""


def plain_columns(model: EnergyModel, bag: Path) -> tuple[Array, Array]:
    """Columns [samples, n, 5] of plain least squares, and currents [samples, n], A.

    Link torque, acceleration, speed, its direction and a constant, through the same filter as
    what the package compares; standstill included.
    """
    recording, setups = read_for_comparison(model, bag)
    columns, currents = [], []
    with closing(recording):
        narrow = NarrowFilter(recording.cutoff)
        for motion in recording.motions():
            for part, dynamics in setups.parts(motion):
                link = dynamics.inverse_dynamics(part.q, part.qd, part.qdd)
                direction = np.tanh(part.qd / 1e-3)
                rows = np.stack([link, part.qdd, part.qd, direction, np.ones_like(link)], axis=-1)
                inside = narrow.inside(part)
                columns.append(narrow(part, rows)[inside])
                currents.append(narrow(part, part.current)[inside])
    return np.concatenate(columns), np.concatenate(currents)


def plain_error(fitted: tuple[Array, Array], judged: tuple[Array, Array]) -> Array:
    """RMS error of currents per joint [n], A, of least squares fitted to one recording."""
    (columns, currents), (others, measured) = fitted, judged
    modelled = np.empty_like(measured)
    for j in range(measured.shape[1]):
        coefficients = np.linalg.lstsq(columns[:, j], currents[:, j], rcond=None)[0]
        modelled[:, j] = others[:, j] @ coefficients
    return np.asarray(np.sqrt(np.mean((modelled - measured) ** 2, axis=0)))


def compare_days(bags: Mapping[str, Path], robot: str) -> dict[tuple[str, str], Array]:
    """Errors [3, n] of every pair (fitted, judged): RMS of the model and of plain least squares
    over all samples, A; share of samples within their stated 95 % interval.
    """
    models = {name: identify([bag], robot).model for name, bag in bags.items()}
    rows = {name: plain_columns(models[name], bag) for name, bag in bags.items()}
    found = {}
    for judged, bag in bags.items():
        for fitted, model in models.items():
            if fitted == judged:
                continue
            recording, setups = read_for_comparison(model, bag)
            with closing(recording):
                metrics = measure(model, recording, setups, anchor=True).as_json()
            rms = np.array([entry["rms"] for entry in metrics["current_all"]])
            within = np.array([entry["coverage"] for entry in metrics["current_interval_all"]])
            found[fitted, judged] = np.array([rms, plain_error(rows[fitted], rows[judged]), within])
    return found


def rows_of(found: Mapping[tuple[str, str], Array]) -> list[tuple[str, ...]]:
    """Rows of the page's table, one per judged recording: means over the models of other days."""
    rows = []
    for name in dict.fromkeys(judged for _, judged in found):
        errors = np.mean([value for (_, judged), value in found.items() if judged == name], axis=0)
        joints = [f"{ours:.2f} / {plain:.2f}" for ours, plain in errors[:2].T]
        rows.append((f"`{name}`", *joints, f"{100 * errors[2].mean():.0f}"))
    return rows


def saved(found: Mapping[tuple[str, str], Array]) -> float:
    """Share of the error of plain least squares that the model saves, mean over pairs."""
    return float(1 - np.mean([value[0].sum() / value[1].sum() for value in found.values()]))
