# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Energies of a recording with all that is said about them: its payload, and advice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.consistency.contradiction import with_contradictions
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.cycles import detector_of_recording
from ur_energy_model.energy.recording_energy import EnergySummary, estimate_energy
from ur_energy_model.energy.telemetry_checks import MatchedModel, model_of_arm
from ur_energy_model.energy.work_log import LOG_FIELDS, WorkLog
from ur_energy_model.identification.payload_check import wrong_payload
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload
from ur_energy_model.telemetry.bag.reader import read_info


class AdvisedEnergy(NamedTuple):
    """What is stated about a recording.

    Attributes:
        summary: energies; a payload that the currents contradict is among the
            contradictions.
        advice: what can be done for less energy.
        matched: the model with the intervals of another arm's, where it is one.
    """

    summary: EnergySummary
    advice: Advice
    matched: MatchedModel


def energy_with_advice(
    model: EnergyModel,
    bag: str | Path,
    *,
    model_path: str | Path | None = None,
    payload: Payload | None = None,
    same_arm: bool = False,
    **how: Any,
) -> AdvisedEnergy:
    """Energies of a recording, what it shows of the payload, and what can be done for less.

    Args:
        model: of the arm, or generic.
        bag: the recording.
        model_path: of the model, for commands to type; None for one without a file.
        payload: that the user states; None for the one that was set.
        same_arm: see `model_of_arm`.
        how: further arguments of `estimate_energy`, such as `progress`.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    log = WorkLog(detector=detector_of_recording(bag))
    summary = estimate_energy(
        model, bag, same_arm=same_arm, fields=LOG_FIELDS, observe=log.add, **how
    )
    log.finish()
    wrong = wrong_payload(model, bag, stated=payload)
    if wrong is not None:
        summary = with_contradictions(summary, (wrong.contradiction,))
    constants = summary.controller_constants
    matched = model_of_arm(model, read_info(bag), constants, same_arm=same_arm)
    advice = adviser().advise(
        matched.model,
        bag,
        log,
        model_path=model_path,
        wrong_payload=wrong,
        payload=payload,
    )
    return AdvisedEnergy(summary, advice, matched)
