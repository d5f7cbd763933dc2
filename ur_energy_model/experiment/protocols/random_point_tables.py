"""Rows of protocol s0: Tables IV to VII of Clochiatti et al., Robotica 2024, beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ur_energy_model.experiment.protocols.outcome import Row
from ur_energy_model.identification.dynamics.reflected_inertia import split_inertia
from ur_energy_model.identification.evaluation.evaluation import Metrics
from ur_energy_model.identification.evaluation.published_current_model import (
    PublishedCurrentModel,
    PublishedErrors,
)
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.typing import Array

LARGE, WRISTS = slice(0, 3), slice(3, 6)
"""Joints of the larger and the smaller size."""
_SIZES = (("joints 1-3", "large_joints", LARGE), ("wrists", "wrists", WRISTS))
_CURRENT_LIMITS = (0.020, 0.066)
"""RMS errors of the current in Table VII by size of joint [A]."""
_DATA = ("arm and data",)
_SAME = 0.15
_ALL = "every sample as recorded, not filtered, standstill included"
_SIGNED = f"mean of model less measurement with its sign, over {_ALL}"
_OURS = "ours: filtered, samples at which the joint moves"
_SIMULATED = "simulated currents are as noisy as those recorded on UR5e arms"


def inertia_rows(
    model: EnergyModel, robot: RobotDescription, published: Mapping[str, Any]
) -> list[Row]:
    """Gear ratio and Table IV."""
    reflected = np.array([joint.reflected_inertia for joint in model.joints])
    split = split_inertia(reflected, robot)
    rotor = split.rotor
    ratio, theirs = robot.gear_ratio, published["gear_ratio"]
    here = float(ratio[0]) if (ratio == ratio[0]).all() else ratio
    same = bool((ratio == theirs).all())
    return [
        Row(
            "gear ratio",
            theirs,
            here,
            "Section 3.2",
            "HFUS-2SH gears",
            judged="agrees"
            if same
            else "differs: motor-side inertia, friction and torque constants from currents are "
            f"1 % (inertia 2 %) smaller than with {theirs:g}",
        ),
        Row(
            "reducer inertia by joint [kg m2]",
            published["reducer_inertia"],
            split.reducer,
            "Table IV",
            "catalogue value, subtracted from what is identified",
            tolerance=0.01,
        ),
        Row(
            "motor and reducer inertia by joint [kg m2]",
            None,
            split.motor_side,
            "Table IV",
            "eq. 9: from target_moment, motor side; the text gives means only",
        ),
        *(
            Row(
                f"mean motor inertia, {name} [kg m2]",
                published[f"motor_inertia_{key}"],
                _mean_of_known(rotor[joints]),
                "Table IV",
                "eq. 9 less the reducer, mean of three joints",
                _DATA,
                _SAME,
            )
            for name, key, joints in _SIZES
        ),
    ]


def friction_rows(
    model: EnergyModel, theirs: PublishedCurrentModel, published: Mapping[str, Any]
) -> list[Row]:
    """Table VI: eq. 18 on every sample beside our fit of the same law."""
    place = "Table VI"
    how = f"eq. 18, least squares over {_ALL}; the text gives means of k_t only"
    ours = "ours: the same law, filtered, moving samples, with bus power and priors"
    joints = model.joints
    own = {
        name: np.array([joint.friction.parameters.get(name, np.nan) for joint in joints])
        for name in ("viscous", "coulomb_direct", "coulomb_reverse")
    }
    constant = np.array([joint.torque_constant for joint in joints])
    rows = []
    for figure, paper, here in (
        ("k_v by joint [N m s/rad]", theirs.viscous, own["viscous"]),
        ("T_dir by joint [N m]", theirs.coulomb_direct, own["coulomb_direct"]),
        ("T_rev by joint [N m]", theirs.coulomb_reverse, own["coulomb_reverse"]),
        ("k_t by joint [N m/A]", theirs.torque_constant, constant),
    ):
        rows.append(Row(figure, None, paper, place, how))
        rows.append(Row(f"{figure}, ours", None, here, place, ours, ("method",)))
    for name, key, size in _SIZES:
        published_mean = published[f"torque_constant_{key}"]
        for label, values, definition, differs in (
            ("", theirs.torque_constant, "eq. 18, mean of three joints", _DATA),
            (", ours", constant, "mean of three joints", ("arm, data and method",)),
        ):
            mean = float(values[size].mean())
            rows.append(
                Row(
                    f"mean torque constant, {name} [N m/A]{label}",
                    published_mean,
                    mean,
                    place,
                    definition,
                    differs,
                    _SAME,
                )
            )
    return rows


def torque_rows(
    test: str, errors: PublishedErrors, metrics: Metrics, published: Mapping[str, Any]
) -> list[Row]:
    """Table V for one test motion."""
    if errors.torque is None:
        return [Row(f"torque errors, {test} [N m]", "see Table V", None, "Table V")]
    torque, largest = errors.torque, errors.torque.largest
    beyond = np.flatnonzero(largest > 1.0)
    judged = (
        "agrees; another arm and data"
        if beyond.tolist() == [0, 1]
        else f"differs: {len(beyond)} joints beyond 1 N m; arm and data differ"
    )
    r2 = torque.r2
    return [
        Row(f"torque, mean error by joint, {test} [N m]", None, torque.mean, "Table V", _SIGNED),
        Row(
            f"torque, largest error by joint, {test} [N m]",
            published["torque_peak"],
            largest,
            "Table V",
            f"largest absolute error over {_ALL}",
            judged=judged,
        ),
        Row(f"torque, RMS error by joint, {test} [N m]", None, torque.rms, "Table V", _ALL),
        Row(
            f"torque, R2 by joint, {test}",
            published["torque_r2"],
            r2,
            "Table V",
            _ALL,
            judged=f"{'agrees' if r2.min() > 0.99 else 'differs'}; another arm and data",
        ),
        *_our_rows("torque", "N m", test, metrics.torque, "Table V", "ours: as METRICS have it"),
    ]


def current_rows(
    test: str, errors: PublishedErrors, metrics: Metrics, published: Mapping[str, Any]
) -> list[Row]:
    """Table VII for one test motion."""
    current, place = errors.current, "Table VII"
    rms, r2 = current.rms, current.r2
    rows = [
        Row(f"current, mean error by joint, {test} [A]", None, current.mean, place, _SIGNED),
        Row(
            f"current, largest error by joint, {test} [A]",
            "sometimes above 1 A",
            current.largest,
            place,
            f"largest absolute error over {_ALL}",
            judged=f"{'agrees' if current.largest.max() > 1.0 else 'differs: smaller'}; another "
            "arm and data",
        ),
    ]
    for (name, key, joints), limit in zip(_SIZES, _CURRENT_LIMITS, strict=True):
        within = bool((rms[joints] <= limit).all())
        rows.append(
            Row(
                f"current, RMS error, {name}, {test} [A]",
                published[f"current_rms_{key}"],
                rms[joints],
                place,
                _ALL,
                judged="agrees; another arm and data"
                if within
                else f"differs: {rms[joints].max() / limit:.1f} times as large; {_SIMULATED}",
            )
        )
    rows.append(
        Row(
            f"current, R2 by joint, {test}",
            published["current_r2"],
            r2,
            place,
            _ALL,
            judged=f"{'agrees' if r2.min() >= 0.985 else 'differs'}; another arm and data",
        )
    )
    rows += _our_rows("current", "A", test, metrics.current, place, _OURS)
    rows.append(
        Row(
            f"current, RMS error by joint, our law, {test} [A]",
            None,
            errors.own_current.rms,
            place,
            f"our model, {_ALL}",
            ("method",),
        )
    )
    return rows


def _mean_of_known(values: Array) -> float | None:
    """Mean without NaN; None if all are NaN (the reducers of CB3 arms are unpublished)."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None


def _our_rows(
    what: str,
    unit: str,
    test: str,
    entries: Sequence[Mapping[str, float | None]] | None,
    place: str,
    how: str,
) -> list[Row]:
    """RMS and R2 as METRICS have them; nothing where they have none."""
    if entries is None:
        return []
    return [
        Row(
            f"{what}, {name} by joint, ours, {test}{suffix}",
            None,
            [entry[key] for entry in entries],
            place,
            how,
            ("method",),
        )
        for key, name, suffix in (("rms", "RMS error", f" [{unit}]"), ("r2", "R2", ""))
    ]
