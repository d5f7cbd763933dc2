# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A Fourier trajectory for tests."""

from __future__ import annotations

import numpy as np

from ur_energy_model.trajectory.fourier import FourierTrajectory, rest_basis


def random_trajectory(
    harmonics: int = 5, seed: int = 0, repetitions: int = 2
) -> FourierTrajectory:
    basis = rest_basis(harmonics)
    free = np.random.default_rng(seed).normal(size=(basis.shape[1], 6))
    coefficients = basis @ free
    return FourierTrajectory(
        "ur5e",
        8.0,
        repetitions,
        coefficients[0],
        coefficients[1 : 1 + harmonics].T,
        coefficients[1 + harmonics :].T,
    )
