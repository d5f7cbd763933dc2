# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""All measures that a recording shows, the best first."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ur_energy_model.energy.advice import Advice, PayloadFinding
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.work_log import WorkLog
from ur_energy_model.errors import RecordingError, UrEnergyError
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.friction import FrictionBank
from ur_energy_model.model.generic import is_generic
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.model.wall import WallModel
from ur_energy_model.optimization.cycle import KEEP_DWELL, Switching, WorkCycle
from ur_energy_model.optimization.measures.cold_start import (
    ALIKE,
    alike,
    cold_start_measures,
)
from ur_energy_model.optimization.measures.measure import (
    Finding,
    Kind,
    Measure,
    Omitted,
    reason_of,
    saving_while_running,
)
from ur_energy_model.optimization.measures.moving import line_measures, moves_measures
from ur_energy_model.optimization.measures.ranking import Measures
from ur_energy_model.optimization.measures.waiting import pause_measures, pose_measures
from ur_energy_model.optimization.optimize import in_session_of
from ur_energy_model.optimization.recorded_cycle import find_cycle
from ur_energy_model.typing import Array

LONGEST = 300.0
"""Length of the begin of a recording in which the cycle is looked for [s]: a cycle that comes again
later shows nothing new, and the search takes no longer in a long recording."""
ENOUGH = 120.0  # time in motion from which the friction of the session is taken [s]
EDGES = (
    2.0  # largest number of cycles for the incomplete cycles at both ends of a recording
)
CRAWL = 0.02  # joint speed at which friction is about the static friction [rad/s]
FOUND = 0.999  # probability that a payload which the currents show is the right one


class MeasuresAdviser:
    """Finds the measures that recordings show; an `Adviser`."""

    def advise(
        self,
        model: EnergyModel,
        bag: str | Path,
        log: WorkLog,
        *,
        model_path: str | Path | None = None,
        wrong_payload: PayloadFinding | None = None,
        payload: Payload | None = None,
        named: str | Path | None = None,
        host: str | None = None,
    ) -> Measures:
        """The measures that a recording shows: payload, pauses, cold starts, and the cycle.

        Arguments and errors: see `energy.advice.Adviser.advise`. Where no cycle can be
        found, the measures of cycles are listed as omitted, with the reason.
        """
        wall = model.wall_of()
        carried = payload if wrong_payload is None else wrong_payload.shown
        in_session = in_session_of(model, bag, payload=carried, enough=ENOUGH)
        cycles = 0.0
        switching: Switching | None = None
        of_cycle: list[Finding]
        try:
            cycle = _work_cycle(in_session, bag, carried, log.seconds)
        except UrEnergyError as error:
            of_cycle = [Omitted(kind, reason_of(error)) for kind in _OF_CYCLES]
        else:
            command = _command(model, named or bag, model_path, host)
            cycles = cycles_in(log, cycle)
            switching = cycle.switching
            of_cycle = [
                *pose_measures(in_session, cycle, cycles, log, wall, carried),
                *moves_measures(in_session, cycle, cycles, wall, command),
                *line_measures(in_session, cycle, cycles, log, wall, command),
            ]
            if cycle.found_by == "whole":
                of_cycle = [_of_one_cycle(each) for each in of_cycle]
        found = [
            *_payload_measures(in_session, log, cycles, wall, wrong_payload),
            *pause_measures(in_session, log, wall, switching),
            *cold_start_measures(log, wall),
            *of_cycle,
        ]
        source = host or str(named or bag)
        measures = []
        omitted = []
        for each in found:
            if isinstance(each, Omitted):
                omitted.append(each)
            else:
                measures.append(replace(each, source=source))
        return Measures.ranked(measures, omitted, log.seconds)

    def together(self, parts: Sequence[Advice]) -> Measures:
        """`Adviser.together`; advice of another adviser is left out."""
        return Measures.together([part for part in parts if isinstance(part, Measures)])


ADVISER = MeasuresAdviser()


_OF_CYCLES: tuple[Kind, ...] = ("pose", "moves", "line")
"""Kinds of measures that concern a repeated cycle."""


def _work_cycle(
    model: EnergyModel, bag: str | Path, payload: Payload | None, seconds: float
) -> WorkCycle:
    """The cycle in the begin of a recording, with the payload that the arm carries.

    A short recording in which nothing repeats is one cycle, as for `optimize`.

    Raises:
        UrEnergyError: the recording has no cycle, or it cannot be read.
    """
    cycle = find_cycle(model, bag, model.description(), KEEP_DWELL, LONGEST)
    if cycle.found_by == "whole" and seconds > LONGEST:
        remedy = "record at least two whole cycles of the running program"
        raise RecordingError(bag, "nothing repeats in the recording", remedy)
    return cycle if payload is None else cycle.with_payload(payload)


def _of_one_cycle(found: Finding) -> Finding:
    """A finding with the condition that the recording, in which nothing repeats, is one cycle."""
    if isinstance(found, Omitted):
        return found
    condition = f"{found.condition}; nothing repeats, the recording counts as one cycle"
    return replace(found, condition=condition)


def cycles_in(log: WorkLog, cycle: WorkCycle) -> float:
    """Number of cycles of this kind that a recording contains, with the parts at its ends.

    With slow samples, several loops of a program may appear as one cycle, in the log or in
    `cycle`: the time in motion of one is then a multiple of the other. The incomplete
    cycles at both ends count by their time in motion, up to `EDGES` in all and to the time
    of work, because further motion may be other work.

    Args:
        log: log of the whole recording, with its cycles.
        cycle: cycle found at the begin of the recording.
    """
    if cycle.found_by == "whole":
        return 1.0
    motion = sum(move.duration for move in cycle.moves)
    complete = max(float(cycle.count), _logged_cycles(log, motion))
    # Cycles for which the rest of the time in motion, and of the time of work, is enough.
    by_motion = log.moving_seconds / motion - complete
    by_work = (log.seconds - log.pauses.seconds) / cycle.duration - complete
    return complete + max(min(by_motion, by_work, EDGES), 0.0)


def _logged_cycles(log: WorkLog, motion: float) -> float:
    """Number of complete cycles of a kind by the cycles of a log; 0 if those are of other work.

    Args:
        log: log of the whole recording, with its cycles.
        motion: time in motion of a cycle of this kind [s].
    """
    usual = alike(list(log.cycles))
    if not usual:
        return 0.0
    usual_motion = float(np.median([each.motion_time for each in usual]))
    shorter = min(usual_motion, motion)
    longer = max(usual_motion, motion)
    multiple = round(longer / shorter)
    if abs(longer - multiple * shorter) > ALIKE * longer:
        return 0.0
    if usual_motion > motion:  # a cycle of the log is several of these
        return float(len(usual) * multiple)
    return len(usual) / multiple


def _command(
    model: EnergyModel, bag: str | Path, model_path: str | Path | None, host: str | None
) -> str:
    """The command that prints the values to type, behind the commands that make its input.

    Args:
        model: model of the arm; a generic one is identified first.
        bag: the recording.
        model_path: file of the model; None if it is in no file.
        host: address of a robot that was measured live, and is recorded first.
    """
    recording = shlex.quote(str(bag))
    file = "model.yaml"
    steps = []
    if host is not None:
        recording = "my_bag"
        steps.append(
            f"ur_energy record --host {shlex.quote(host)} --duration 120 -o my_bag"
        )
    if is_generic(model) or model_path is None:
        steps.append(f"ur_energy identify {recording} -o {file}")
    else:
        file = shlex.quote(str(model_path))
    steps.append(f"ur_energy optimize {file} {recording}")
    return " && ".join(steps)


# A payload that is set wrongly. The motion stays the same, and with it the torque of the
# motors: the right setting saves nothing by itself. Currents at rest may change, by as
# much as static friction can carry.


def _payload_measures(
    model: EnergyModel,
    log: WorkLog,
    cycles: float,
    wall: WallModel,
    wrong: PayloadFinding | None,
) -> list[Finding]:
    """The measure of setting the right payload, if the currents contradict the one that is set.

    Args:
        model: model of the arm, in the session of the recording.
        log: what the arm did, with the places at which it rested.
        cycles: found cycles of the recording.
        wall: power at the mains.
        wrong: payloads that were set and that the currents show; None where they agree.
    """
    if wrong is None:
        reason = "nothing in the currents contradicts the payload that was set"
        return [Omitted("payload", reason)]
    found = wrong.contradiction
    seconds = sum(place.seconds for place in log.places)
    energy = sum(place.seconds * place.power for place in log.places)
    power = energy / seconds if seconds > 0.0 else model.bus.standby
    std = _friction_bound(model, log) / CONFIDENCE
    return [
        Measure(
            kind="payload",
            title=f"{found.stated}, but {found.shown} ({found.evidence})",
            action=found.remedy,
            saving=saving_while_running(wall, 0.0, std, power=power),
            cycles=cycles,
            condition="the motion stays the same, and takes as much; what is predicted here is "
            "for the payload that the currents show",
            certainty=FOUND,
        )
    ]


def _friction_bound(model: EnergyModel, log: WorkLog) -> float:
    """Largest change of the energy at rest [J], where friction carries part of the weight.

    Args:
        model: model of the arm.
        log: what the arm did, with the places at which it rested.
    """
    zero = np.zeros((1, model.dof))
    dynamics = model.dynamics(setup=Setup(model.setup.gravity))
    friction = _static_friction(model)
    bound = 0.0
    for place in log.places:
        weight = dynamics.gravity_torque(place.q[None])
        carried = np.minimum(friction, np.abs(weight)) * np.sign(weight)
        powers = []
        for torque in (weight - carried, weight + carried):
            at_rest = model.from_link_torque(torque, zero, zero, std=False)
            powers.append(float(at_rest.total_power[0]))
        least, most = powers
        bound += 0.5 * (most - least) * place.seconds
    return bound


def _static_friction(model: EnergyModel) -> Array:
    """Friction of each joint at a crawl, joint side [n], N m."""
    ratio = np.array([joint.gear_ratio for joint in model.joints])
    bank = FrictionBank([joint.friction for joint in model.joints], ratio)
    speed = np.full((1, model.dof), CRAWL)
    return np.asarray(np.abs(ratio * bank.torque(speed, np.zeros_like(speed))[0]))
