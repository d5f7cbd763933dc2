# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""`ur_energy predict`: the energy of a planned trajectory, before the robot moves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ur_energy_model.cli.arguments import (
    ChosenModel,
    chosen_model,
    stated_payload,
    with_payload,
)
from ur_energy_model.cli.command_options import PredictOptions
from ur_energy_model.cli.output import note, print_json, print_line, print_table, warn
from ur_energy_model.consistency.contradiction import Contradiction
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.prediction import PlanEnergy, predict_energy, too_weak
from ur_energy_model.identification import evaluation
from ur_energy_model.identification.payload_check import payload_contradictions
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload
from ur_energy_model.rooms import Given
from ur_energy_model.trajectory.plan_check import checked_plan
from ur_energy_model.trajectory.plan_file import read_plan


def predict(given: Given) -> None:
    """`ur_energy predict`: predict the energy and print it, with reasons for doubt.

    Raises:
        UrEnergyError: the model, the trajectory or the recording cannot be used.
    """
    options = given.of(PredictOptions)
    session = options.session
    payload = stated_payload(options.payload)
    recordings = [] if session is None else [session]
    chosen = chosen_model(options.model, options.robot, recordings)
    model = chosen.model
    contradictions: tuple[Contradiction, ...] = ()
    if session is not None:
        model = _with_recorded_setup(chosen, session)
    model = with_payload(model, payload)
    if session is not None:
        contradictions = payload_contradictions(model, session, stated=payload)
        model = model.in_session(evaluation.identify_session(model, session))
    robot = model.description()
    plan = read_plan(options.trajectory, [joint.name for joint in model.joints])
    plan, plan_warnings = checked_plan(plan, robot.max_acceleration)
    energy = predict_energy(model, plan)
    doubts = [each.words() for each in contradictions]
    warnings = [*doubts, *plan_warnings, *too_weak(energy, robot)]
    warn(warnings)
    if options.json:
        content = {
            **energy.as_json(),
            "session": evaluation.session_json(model.session),
            "warnings": warnings,
            "contradictions": [each.as_json() for each in contradictions],
        }
        print_json({"model": chosen.entry, **content})
        return
    _print(energy, options.trajectory, chosen)
    if session is None:
        _note_validity(chosen, payload)


def _with_recorded_setup(chosen: ChosenModel, session: Path) -> EnergyModel:
    """The chosen model, where a generic one gets mounting and payload from a recording.

    Args:
        chosen: the model as the user has named it.
        session: the recording, of the same day as the motion.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    if chosen.path is not None:  # a model file states its setup
        return chosen.model
    setup = evaluation.recorded_setup(chosen.model, session)
    return replace(chosen.model, setup=setup, setup_source="recorded")


def _print(energy: PlanEnergy, trajectory: Path, chosen: ChosenModel) -> None:
    """Print the energy of the arm, and of its joints, with 95 % intervals.

    Args:
        energy: predicted energy.
        trajectory: file of the plan.
        chosen: the model as the user has named it.
    """
    half_width = CONFIDENCE * energy.total_std
    print_line(
        f"at the supply: {energy.total:.1f} ± {half_width:.1f} J, "
        f"peak {energy.peak_power:.1f} W"
    )
    print_line(f"model: {chosen.words}")
    columns = (
        energy.names,
        energy.mechanical,
        energy.electrical,
        CONFIDENCE * energy.electrical_std,
        energy.efficiency,
    )
    print_table(
        f"energy of {trajectory}, {energy.duration:.1f} s [J]",
        ["joint", "mechanical", "electrical", "± 95 %", "efficiency"],
        list(zip(*columns, strict=True)),
    )


def _note_validity(chosen: ChosenModel, payload: Payload | None) -> None:
    """Print for which sessions and setups a prediction without --session holds.

    Args:
        chosen: the model; a generic one states neither mounting nor payload.
        payload: payload that the user states; None for none.
    """
    note("this holds for any session; --session BAG of the same day narrows the interval")
    if chosen.path is None:
        load = "without payload" if payload is None else "with this payload"
        arm = f"an arm mounted upright, {load}"
        note(f"this holds for {arm}; --session BAG has its mounting")
