# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy evaluate`: a model compared with recordings, and how METRICS are printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ur_energy_model.cli.arguments import (
    CommandBags,
    failed_json,
    failed_of,
    model_needed,
    report_failed,
    stated_payload,
    with_payload,
)
from ur_energy_model.cli.command_options import EvaluateOptions
from ur_energy_model.cli.output import print_json, print_line, print_objects, warn
from ur_energy_model.consistency.contradiction import with_contradictions
from ur_energy_model.energy.energy_summary import common_serials
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.identification import evaluation
from ur_energy_model.identification.payload_check import payload_contradictions
from ur_energy_model.identification.visited_path import MOTION_WORDS
from ur_energy_model.model.drives import JointModel
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload
from ur_energy_model.rooms import Given
from ur_energy_model.typing import Progress

Entry = Mapping[str, Any]
"""METRICS of a recording, as `Metrics.as_json` returns them."""
_NULL_ENERGY = "null_energy_error_percent"


def evaluate(given: Given) -> None:
    """Compare the model with each recording, and print.

    Raises:
        UrEnergyError: the model or an option cannot be used, or recordings failed; the
            others are printed before.
    """
    options = given.of(EvaluateOptions)
    model = model_needed(given, options.model, options.bags[0])
    payload = stated_payload(options.payload)
    with_payload(model, payload)  # refuses a payload that the arm cannot carry
    work = partial(
        _evaluated,
        model,
        payload=payload,
        anchor=not options.no_anchor,
        same_arm=options.same_arm,
    )

    def here(bag: Path, report: Progress) -> evaluation.Metrics:
        """METRICS of the only recording, with progress within it."""
        return work(bag, progress=report)

    work_on = CommandBags(given, options.bags, options.workers)
    results = work_on.results("evaluating", here, work)
    failed = failed_of(results)
    entries: list[dict[str, Any]] = []
    for result in results:
        if result.value is not None:
            metrics = replace(result.value, bag=str(result.bag))
            entries.append(metrics.as_json())
    several = len(results) > 1
    if options.json:
        content: dict[str, Any] = {"model": options.model, "robot": model.robot}
        content |= _entries_json(entries, named=several)
        if several:
            content["total"] = _total_json(entries)
            content["failed"] = failed_json(failed)
        print_json(content)
    else:
        for entry in entries:
            warn(_warnings(entry, named=several))
            print_metrics(entry, model.joints)
            if entry["motion"] != "unknown":
                print_line(f"{entry['bag']}: {MOTION_WORDS[entry['motion']]}")
    report_failed(failed, len(results))


def _evaluated(
    model: EnergyModel, bag: Path, *, payload: Payload | None, **how: Any
) -> evaluation.Metrics:
    """METRICS of a recording, and what it shows of the payload that was set or stated.

    Args:
        model: model of the arm.
        bag: the recording.
        payload: payload that the user states; None for the payload set in the controller.
        how: further arguments of `evaluation.evaluate`.
    """
    metrics = evaluation.evaluate(model, bag, payload=payload, **how)
    found = payload_contradictions(model, bag, stated=payload)
    return with_contradictions(metrics, found)


def _warnings(entry: Entry, *, named: bool) -> list[str]:
    """Warnings about a recording.

    Args:
        entry: METRICS of the recording.
        named: whether each warning begins with the name of the recording.
    """
    if not named:
        return list(entry["warnings"])
    return [f"{entry['bag']}: {line}" for line in entry["warnings"]]


def _entries_json(entries: Sequence[Entry], *, named: bool) -> dict[str, Any]:
    """JSON of the recordings: their warnings together, serial numbers, and METRICS.

    Args:
        entries: METRICS of the recordings.
        named: whether each warning begins with the name of its recording.
    """
    warnings: list[str] = []
    for entry in entries:
        warnings += _warnings(entry, named=named)
    return {
        "warnings": warnings,
        "serials": common_serials([entry["serials"] for entry in entries]),
        "results": entries,
    }


def _total_json(entries: Sequence[Entry]) -> dict[str, Any]:
    """JSON of all recordings together: samples, time [s], and errors of power [W]."""
    total: dict[str, Any] = {
        "recordings": len(entries),
        "samples": sum(entry["samples"] for entry in entries),
        "duration": sum(entry["duration"] for entry in entries),
    }
    for name in evaluation.POWERS:
        total[f"{name}_rmse"] = _common_rmse(entries, name)
    return total


def _common_rmse(entries: Sequence[Entry], name: str) -> float | None:
    """RMS error of the power of all recordings, weighted by their durations [W].

    Args:
        entries: METRICS of the recordings.
        name: key of the power in METRICS.

    Returns:
        None where no recording has this error.
    """
    weights: list[float] = []
    squares: list[float] = []
    for entry in entries:
        power = entry[name]
        if power is not None and power["rmse"] is not None:
            weights.append(entry["duration"])
            squares.append(power["rmse"] ** 2)
    if sum(weights) <= 0.0:
        return None
    return float(np.sqrt(np.average(squares, weights=weights)))


# METRICS for people.


def print_metrics(entry: Entry, joints: Sequence[JointModel]) -> None:
    """Print METRICS of a model: torque, currents while moving and always, and power.

    Args:
        entry: METRICS, with the name of the recording as "bag".
        joints: joints of the model, in the order of the entries' rows.
    """
    bag = entry["bag"]
    _print_errors(entry, "torque", f"{bag}: torque error [N m]", joints)
    _print_errors(entry, "current", f"{bag}: current error while moving [A]", joints)
    title = f"{bag}: current error, standstill included [A]"
    _print_errors(entry, "current_all", title, joints)
    session = entry.get("session")
    if session is not None:
        print_line(f"{bag}: {_session_words(session)}")
    _print_powers(entry)
    _print_joint_power(bag, entry.get("joint_power") or ())


def _print_errors(
    entry: Entry, key: str, title: str, joints: Sequence[JointModel]
) -> None:
    """Print the errors of a channel of each joint; nothing where they are not known.

    Args:
        entry: METRICS.
        key: key of the channel in the entries, such as "torque".
        title: title of the table.
        joints: joints of the model, in the order of the rows.
    """
    rows = entry[key]
    if rows is None:
        return
    columns: dict[str, Any] = {
        "joint": "joint",
        "mean": "mean",
        "max": "max",
        "rms": "rms",
        "R2": evaluation.r2_words,
    }
    if "null_rms" in rows[0]:
        columns["rms of null model"] = "null_rms"
    named = [
        {"joint": joint.name, **row} for joint, row in zip(joints, rows, strict=True)
    ]
    print_objects(title, named, columns)


def _session_words(session: Mapping[str, Any]) -> str:
    """The session to which the model was adapted for a comparison, in words.

    Args:
        session: entry "session" of METRICS; powers are in W, times in s.
    """
    if not session["anchored"]:
        return "standby power and friction are the model's"
    scales = ", ".join(f"{scale:.2f}" for scale in session["friction_scale"])
    return (
        f"adapted to {session['moving_seconds']:.1f} s of motion and "
        f"{session['still_seconds']:.1f} s of standstill: friction x {scales} (base to "
        f"tool); standby {session['standby']:.1f} W"
    )


def _print_powers(entry: Entry) -> None:
    """Print the errors of power at the supply, a row for each way to compute it.

    Args:
        entry: METRICS; ways that are not known have no row.
    """
    rows: list[dict[str, Any]] = []
    for name, how in evaluation.POWERS.items():
        if entry.get(name):
            rows.append({"how": how, _NULL_ENERGY: None, **entry[name]})
    if not rows:
        return
    columns = {
        "": "how",
        "RMSE [W]": "rmse",
        "from": "rmse_low",
        "to (95 %)": "rmse_high",
        "RMSE [%]": "rmse_percent",
        "R2": "r2",
        "energy error [%]": "energy_error_percent",
    }
    if rows[0][_NULL_ENERGY]:
        columns["of three coefficients [%]"] = _NULL_ENERGY
    print_objects(f"{entry['bag']}: power at the supply", rows, columns)


def _print_joint_power(bag: str, joints: Sequence[Mapping[str, Any]]) -> None:
    """Print modelled and measured energies of the joints, or why none are measured.

    Args:
        bag: name of the recording.
        joints: entries of METRICS; none where nothing is known.
    """
    if not joints:
        return
    if "reason" in joints[0]:
        print_line(f"{bag}: joint power not measured: {joints[0]['reason']}")
        return
    print_objects(
        f"{bag}: energy of the joints in motion, modelled and by joint voltages [J]",
        joints,
        {
            "joint": "joint",
            "modelled": "modelled_J",
            "± 95 % (modelled)": lambda row: CONFIDENCE * row["modelled_std_J"],
            "measured": "measured_J",
            "± 95 % (measured)": lambda row: CONFIDENCE * row["measured_std_J"],
            "measured / modelled": "ratio",
        },
    )
    if "note" in joints[0]:
        print_line(f"{bag}: {joints[0]['note']}")
