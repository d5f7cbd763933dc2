# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The energies of a recording, whether its payload was set right, and advice to save energy."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ur_energy_model.consistency.contradiction import with_contradictions
from ur_energy_model.energy.advice import Advice, adviser
from ur_energy_model.energy.cycles import detector_of_recording
from ur_energy_model.energy.energy_summary import EnergySummary
from ur_energy_model.energy.matched_model import MatchedModel, model_of_recording
from ur_energy_model.energy.recording_energy import estimate_energy
from ur_energy_model.energy.work_log import LOG_FIELDS, WorkLog
from ur_energy_model.identification.payload_check import wrong_payload
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload


class AdvisedEnergy(NamedTuple):
    """Energies of a recording, and what can be done to save energy.

    Attributes:
        summary: energies of the recording; a payload that the motor currents contradict
            is among the contradictions.
        advice: measures that save energy.
    """

    summary: EnergySummary
    advice: Advice


def energy_with_advice(
    model: EnergyModel,
    bag: str | Path,
    *,
    model_path: str | Path | None = None,
    payload: Payload | None = None,
    same_arm: bool = False,
    matched: MatchedModel | None = None,
    **how: Any,
) -> AdvisedEnergy:
    """Energies of a recording, compared with the payload that was set, and advice.

    Args:
        model: model of the arm, or generic.
        bag: the recording.
        model_path: file of the model, for the commands that the advice contains; None for
            a model without a file.
        payload: actual payload as stated by the user; None for the one that was set in
            the controller.
        same_arm: whether the recording is of the arm of the model (see `model_of_arm`);
            only used where `matched` is None.
        matched: the model for the arm of the recording; None to match it here.
        how: further arguments of `estimate_energy`, such as `progress`.

    Raises:
        UrEnergyError: the recording cannot be used.
    """
    if matched is None:
        matched = model_of_recording(model, bag, same_arm=same_arm)
    log = WorkLog(detector=detector_of_recording(bag))
    summary = estimate_energy(
        model, bag, matched=matched, fields=LOG_FIELDS, observe=log.add, **how
    )
    log.finish()
    wrong = wrong_payload(model, bag, stated=payload)
    if wrong is not None:
        summary = with_contradictions(summary, (wrong.contradiction,))
    advice = adviser().advise(
        matched.model,
        bag,
        log,
        model_path=model_path,
        wrong_payload=wrong,
        payload=payload,
    )
    return AdvisedEnergy(summary, advice)
