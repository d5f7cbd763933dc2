# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""What waiting costs: poses in which the arm is held, and pauses in which it could be off.

Holding an arm takes copper and driver losses that depend on the pose: up to a third of
the power at rest. A wait that has no other purpose than time costs least at the stop of
the program where the arm is held most cheaply. In a long pause the arm and, at the mains,
most of its control box need no power at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ur_energy_model.energy.work_log import LONGEST_STOP, RestPlace, WorkLog
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.setup import Payload, Setup
from ur_energy_model.model.wall import SQUARE, STATES, SUPPLY, TERMS, WallModel
from ur_energy_model.optimization.cycle import Switching, WorkCycle
from ur_energy_model.optimization.measures.measure import (
    LEAST_SHARE,
    Finding,
    Measure,
    Omitted,
    saving_of_terms,
    saving_while_running,
)
from ur_energy_model.optimization.path import holding_power
from ur_energy_model.typing import Array

HOLDING_STD = 0.5
"""Standard deviation of the power of holding that was measured at a single stop [W]: static
friction carries another part of the weight each time that the arm comes to rest."""
UNSEEN_STD = 3.0
"""Standard deviation of a modelled power of holding [W], where too few measured powers show the
error of the model."""
_ENOUGH_RESTS = 3  # measured powers of holding that show the error of the model
SETTLING_SHARE = 0.003
"""Standard deviation of what another place of a wait changes beyond the power of holding, relative
to the energy of the cycle: how the arm settles, and what friction carries as the next
move begins. On simulated arms it was up to 0.4 %."""


class _Stop(NamedTuple):
    """A stop of the program at the end of a move.

    Attributes:
        number: number of the move, from 0.
        q: joint positions [n], rad.
        lines: lines of the move in the program; empty if unknown.
        power: power of holding the arm at the stop, whole arm at the supply [W].
        std: standard deviation of `power` [W].
    """

    number: int
    q: Array
    lines: tuple[int, ...]
    power: float
    std: float

    def words(self) -> str:
        """The stop for people, who count moves from 1."""
        return f"line {self.lines[0]}" if self.lines else f"move {self.number + 1}"


def pose_measures(
    model: EnergyModel,
    cycle: WorkCycle,
    cycles: float,
    log: WorkLog,
    wall: WallModel,
    payload: Payload | None = None,
) -> list[Finding]:
    """A measure for each wait that could be spent in a cheaper pose of the same program.

    Args:
        model: model of the arm, in the session of the recording.
        cycle: recorded cycle of the program; waits that must stay are left alone.
        cycles: number of cycles of this kind in the recording.
        log: what the arm did, with the powers at its rests.
        wall: power at the mains.
        payload: the actual payload, where it is known; None for the payload that was set.
    """
    stops = _stops(model, cycle, log, payload)
    energy = sum(move.energy for move in cycle.moves)
    for stop, rest in zip(stops, cycle.rests, strict=True):
        energy += stop.power * rest.duration
    reason = "the program has no wait that is longer than those of grippers and sensors"
    found: list[Finding] = []
    for places in cycle.shared_waits:
        if any(cycle.rests[move].waits[number].kept for move, number in places):
            continue
        reason = "the arm waits where holding it takes least, or nearly so"
        saving = _moved_wait(cycle, stops, places, energy)
        if saving.saved >= LEAST_SHARE * energy:
            found.append(saving.measure(cycles, wall))
    return found or [Omitted("pose", reason)]


class _MovedWait(NamedTuple):
    """A wait of the program that is moved behind another stop, per cycle.

    Attributes:
        seconds: duration of all waits that its line runs [s].
        power: power of holding the arm at the present stop, whole arm at the supply [W].
        where: place of the wait at present.
        to: place to which the wait is moved.
        std: standard deviation of the saved energy [J].
    """

    seconds: float
    power: float
    where: str
    to: _Stop
    std: float

    @property
    def saved(self) -> float:
        """Energy that is saved at the supply [J]."""
        return self.seconds * (self.power - self.to.power)

    def measure(self, cycles: float, wall: WallModel) -> Measure:
        """The measure for a number of cycles in the recording."""
        angles = ", ".join(f"{angle:.0f}" for angle in np.rad2deg(self.to.q))
        there = self.to.words()
        return Measure(
            kind="pose",
            title=f"the arm waits {self.seconds:.2f} s per cycle ({self.where}) where holding it "
            f"takes {self.power:.1f} W; at the end of {there} it takes {self.to.power:.1f} W",
            action=f"move this wait behind {there} (joints {angles} degrees)",
            saving=saving_while_running(
                wall, cycles * self.saved, cycles * self.std, power=self.power
            ),
            cycles=cycles,
            condition="only time is waited for there, no part and no signal",
            place=self.where,
        )


def _moved_wait(
    cycle: WorkCycle,
    stops: Sequence[_Stop],
    places: Sequence[tuple[int, int]],
    energy: float,
) -> _MovedWait:
    """A wait of the program, moved to the stop where the arm is held most cheaply.

    Args:
        cycle: recorded cycle of the program.
        stops: stops of the cycle.
        places: places of the wait in the cycle, by numbers of the move and of the wait.
        energy: energy of the cycle at the supply [J].
    """
    # The standard deviation is added, so that of two stops with equal powers the stop with
    # the more certain power is taken.
    to = min(stops, key=lambda stop: stop.power + stop.std)
    waits = [cycle.rests[move].waits[number] for move, number in places]
    here = [stops[move] for move, _ in places]
    seconds = sum(wait.duration for wait in waits)
    spent = 0.0
    for wait, stop in zip(waits, here, strict=True):
        spent += wait.duration * stop.power
    holding_std = seconds * float(np.hypot(max(stop.std for stop in here), to.std))
    lines = waits[0].lines
    where = f"line {lines[0]}" if lines else f"after {here[0].words()}"
    return _MovedWait(
        seconds=seconds,
        power=spent / seconds,
        where=where,
        to=to,
        std=float(np.hypot(holding_std, SETTLING_SHARE * energy)),
    )


def _stops(
    model: EnergyModel, cycle: WorkCycle, log: WorkLog, payload: Payload | None
) -> list[_Stop]:
    """The stops of a cycle with the power of holding the arm.

    The power is the measured one where the arm rested there; else it is the model's
    power, corrected by the model's mean error at the measured stops.
    """
    is_measured = log.total_source.name == "measured"
    # Of each stop: the modelled power, the place where the arm rested, if any, and the
    # error of the model at this place.
    modelled: list[float] = []
    places: list[RestPlace | None] = []
    errors: list[float] = []
    for move in cycle.moves:
        pose = move.q[-1]
        carried = payload or move.rest.payload
        power = _modelled(model, pose, carried, cycle.temperature)
        place = log.place_at(pose) if is_measured else None
        modelled.append(power)
        places.append(place)
        if place is not None:
            errors.append(place.power - power)
    offset = float(np.mean(errors)) if errors else 0.0
    unseen_std = UNSEEN_STD
    if len(errors) >= _ENOUGH_RESTS:
        unseen_std = max(float(np.std(errors, ddof=1)), HOLDING_STD)
    stops: list[_Stop] = []
    for number, (move, place) in enumerate(zip(cycle.moves, places, strict=True)):
        power = modelled[number] + offset
        std = unseen_std
        if place is not None:
            scatter = 0.0 if place.count < 2 else place.power_std
            power = place.power
            std = float(np.hypot(scatter, HOLDING_STD))
        stops.append(_Stop(number, move.q[-1], move.lines, power, std))
    return stops


def _modelled(
    model: EnergyModel, pose: Array, payload: Payload | None, temperature: Array | None
) -> float:
    """Power of holding the arm at joint positions [n] with a payload, by the model [W]."""
    setup = model.setup if payload is None else Setup(model.setup.gravity, payload)
    dynamics = model.dynamics(setup=setup)
    return float(holding_power(model, dynamics, pose[None], temperature)[0])


# Pauses in which the arm could be switched off.

SWITCHING = 20.0
"""Time of switching off and on again, in which nothing is saved, where the recording does not show
it [s]: power on, brake release and a short move of every joint."""
SWITCHING_STD = 10.0  # standard deviation of SWITCHING [s]
SEEN_SWITCHING_STD = 1.0  # standard deviation of a time that the recording shows [s]
POWER_STD = 0.3  # standard deviation of a measured mean power [W]
_OFF = STATES.index("off")
_BRAKED = STATES.index("braked")
_RUNNING = STATES.index("running")


def pause_measures(
    model: EnergyModel, log: WorkLog, wall: WallModel, switching: Switching | None = None
) -> list[Finding]:
    """The measure of switching the arm off in its long pauses, if there are any.

    Args:
        model: model of the arm.
        log: what the arm did.
        wall: power at the mains.
        switching: what switching off and on takes on this arm; None where no recording
            shows it.
    """
    pauses = log.pauses
    if not pauses.number:
        return [Omitted("pause", f"the arm never stood still for {LONGEST_STOP:.0f} s")]
    switching_time = SWITCHING
    switching_std = SWITCHING_STD
    source = "assumed"
    if switching is not None:
        switching_time = switching.time
        switching_std = SEEN_SWITCHING_STD
        source = "as recorded"
    off_seconds = pauses.seconds - pauses.number * switching_time
    power = pauses.energy / pauses.seconds
    off_power = _off_power(model, log, switching)
    above = power - off_power
    power_std = POWER_STD
    if log.total_source.name != "measured":
        power_std = max(power_std, model.session.standby_std)
    # Standard deviations of the energy [J]: by the times of switching, and by the power.
    by_switching = pauses.number * above * switching_std
    by_power = off_seconds * power_std
    std = float(np.hypot(by_switching, by_power))
    braked = pauses.braked_seconds / pauses.seconds
    terms = np.zeros(TERMS)
    terms[_OFF] = -off_seconds
    terms[_BRAKED] = braked * off_seconds
    terms[_RUNNING] = (1.0 - braked) * off_seconds
    terms[SUPPLY] = above * off_seconds
    terms[SQUARE] = (power**2 - off_power**2) * off_seconds
    many = "a pause" if pauses.number == 1 else f"{pauses.number} pauses"
    return [
        Measure(
            kind="pause",
            title=f"the arm stood switched on for {pauses.seconds / 60.0:.1f} min in {many} of "
            f"more than {LONGEST_STOP:.0f} s, at {power:.1f} W",
            action="switch the arm off in such pauses, on the pendant or by the dashboard server "
            "(port 29999): power off; then power on and brake release",
            saving=saving_of_terms(wall, terms, std, power=power),
            condition=f"switching off and on takes {switching_time:.0f} s ({source}), and the "
            "program is started again",
        )
    ]


def _off_power(model: EnergyModel, log: WorkLog, switching: Switching | None) -> float:
    """Power at the supply of an arm that is switched off [W]."""
    if log.off_power is not None:
        return log.off_power
    if switching is not None:
        return switching.power
    return float(model.bus.mode_power.get("POWER_OFF", 0.0))
