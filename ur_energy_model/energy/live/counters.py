"""Energy counters of one arm: lifetime, since reset, since the last reading; kept on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import numpy as np

from ur_energy_model.energy.channels import Channels
from ur_energy_model.energy.gaps import Steps
from ur_energy_model.energy.live.journal_entry import JournalEntry
from ur_energy_model.energy.live.saved_state import Counters
from ur_energy_model.energy.live.state_file import StateFile
from ur_energy_model.energy.meter import EnergyMeter, MeterReading
from ur_energy_model.energy.power_table import EnergyCorrection
from ur_energy_model.typing import Array

LONGEST_ABSENCE = 1.0e8
"""Time since the last run that is believed [s], three years; beyond it the clock is another one."""


class EnergyCounters:
    """Integrates powers; the counters survive restarts.

    A disk that cannot be written never stops counting: the counters stay in memory, `problem` is
    why, and every saving tries again.

    Args:
        channels: what is counted.
        path: of the state file; None for none.
        robot: description name of the arm.

    Attributes:
        note: what the state file told about the arm, for its users; None if there is nothing.

    Raises:
        InputError: the state file is damaged, in use or belongs to another robot.
    """

    def __init__(self, channels: Channels, path: Path | None, robot: str | None = None) -> None:
        self.channels = channels
        self.note: str | None = None
        self._file: StateFile | None = None
        self._journal_problem: str | None = None
        counters = Counters.new(len(channels), utc_now())
        if path is not None:
            self._file = StateFile(path, channels, robot)
            try:
                counters = self._file.load() or counters
            except BaseException:
                self._file.close()
                raise
        self._begin(counters)
        self.save()
        self.journal()

    def _begin(self, counters: Counters) -> None:
        """Continue counters."""
        self._counters = counters
        self._meter = EnergyMeter(len(self.channels), start=counters.lifetime)
        self._clock = counters.clock
        self._highest = counters.lifetime.net
        if counters.highest is not None:
            self._highest = np.maximum(self._highest, counters.highest)
        self._resuming = counters.clock is not None

    @property
    def lifetime(self) -> MeterReading:
        """Energy since the state file was created."""
        return self._meter.reading

    @property
    def highest(self) -> Array:
        """Highest lifetime net energy at any journal entry so far [channels], J.

        It never decreases, also where a joint gives energy back, and over restarts.
        """
        return self._highest

    @property
    def since_reset(self) -> MeterReading:
        """Energy since the last reset."""
        return self._meter.reading - self._counters.reset

    @property
    def reset_time(self) -> str:
        """Time of the last reset, ISO 8601."""
        return self._counters.reset_time

    @property
    def reset_reason(self) -> str:
        """Reason of the last reset."""
        return self._counters.reset_reason

    @property
    def serial(self) -> str | None:
        """Serial number of the arm that is counted, None if unknown."""
        return self._counters.serial

    @property
    def problem(self) -> str | None:
        """Why the counters are not on the disk, None if they are."""
        if self._file is None:
            return self._journal_problem
        return self._file.problem or self._journal_problem

    def bind(self, serial: str) -> bool:
        """Count for the arm with this serial number; returns whether the counters are others now.

        Counters of an unknown arm become its own. Those of another arm are kept beside the state
        file, and those of this arm continue, or begin at zero.
        """
        if serial == self.serial:
            return False
        if self.serial is None:
            self._counters = replace(self._counters, serial=serial)
            return False
        reason = f"arm {serial} instead of {self.serial}"
        counters, kept = None, ""
        if self._file is not None:
            counters, path = self._file.exchange(self._present(), serial)
            kept = f"; those of the other one are kept in {path}"
        self.note = f"{reason}: counters of its own{kept}"
        if counters is None:
            counters = replace(Counters.new(len(self.channels), utc_now(), reason), serial=serial)
        restarts = self._meter.restarts
        self._begin(counters)
        self._meter.restarts = restarts
        self.save()
        return True

    @property
    def clock_restarts(self) -> int:
        """Number of backward steps of the controller's clock."""
        return self._meter.restarts

    def integrate(self, time: Array, steps: Steps, power: Array) -> None:
        """Integrate samples that follow the previous ones.

        Args:
            time: controller timestamps [n], s.
            steps: to the samples [n].
            power: powers [n, channels], W, finite.
        """
        if self._resuming:
            self._resuming = False
            self._account_for_absence(float(time[0]))
        self._meter.integrate_steps(steps, power)
        self._clock = float(time[-1])

    def correct(self, correction: EnergyCorrection) -> None:
        """Correct the energy counted so far; no counter decreases."""
        self._meter.correct(correction)

    @property
    def lifetime_uncorrected(self) -> MeterReading:
        """`lifetime` without corrections: differences of it are integrals of power."""
        now = self.lifetime
        net = now.net - self._meter.corrections
        return MeterReading(net, now.consumed, now.accounted, now.unaccounted)

    def reset(self, reason: str) -> None:
        """Set the counters since reset to zero; the lifetime counters continue."""
        self._counters = replace(
            self._counters, reset=self.lifetime, reset_time=utc_now(), reset_reason=reason
        )
        self.save()

    def read_interval(self) -> MeterReading:
        """Energy since the last call; since the state file was created at the first."""
        passed = self.lifetime - self._counters.interval
        self._counters = replace(self._counters, interval=self.lifetime)
        self.save()
        return passed

    def change_channels(self, channels: Channels) -> None:
        """Continue with other channels; new ones start at zero."""
        names, counters = self.channels.names, self._counters
        last = replace(self.lifetime, net=self._meter.last_power)
        self._meter = EnergyMeter(len(channels), start=channels.convert(self.lifetime, names))
        self._meter.last_power = channels.convert(last, names).net
        self._counters = counters.converted(channels, names)
        self._highest = channels.convert_values(self._highest, names)
        self.channels = channels
        if self._file is not None:
            self._file.set_channels(channels)
        self.save()

    def note_highest(self) -> None:
        """Include the present energies in the highest ones."""
        self._highest = np.maximum(self._highest, self.lifetime.net)

    def journal(self) -> None:
        """Journal the counters before they are published, so that a kill cannot take them back."""
        self.note_highest()
        if self._file is None:
            return
        try:
            self._file.journal(JournalEntry(self.lifetime, self._clock, self._highest))
        except OSError as error:
            self._journal_problem = f"{self._file.path}: cannot be written ({error.strerror})"
        else:
            self._journal_problem = None

    def prepare_save(self) -> Callable[[], None]:
        """Take the counters to save; returns a function that writes them to disk.

        Counting may continue before it is called: the journal holds newer values. A disk that
        cannot be written is a `problem`.
        """
        if self._file is None:
            return lambda: None
        write = self._file.prepare_save(self._present())

        def save() -> None:
            with suppress(OSError):
                write()

        return save

    def save(self) -> None:
        """Write the counters to disk."""
        self.prepare_save()()

    def close(self) -> None:
        """Save, and release the state file."""
        if self._file is not None:
            self.save()
            self.journal()  # a full disk may still have room for it
            self._journal_problem = self.problem
            self._file.close()
            self._file = None

    def _present(self) -> Counters:
        """The counters now."""
        return self._counters.at(self.lifetime, self._clock, self._highest)

    def _account_for_absence(self, now: float) -> None:
        """Count the time since the last run as unaccounted, if the clock has not restarted."""
        if self._clock is not None and 0.0 < now - self._clock < LONGEST_ABSENCE:
            away = replace(MeterReading.zero(len(self.channels)), unaccounted=now - self._clock)
            self._meter = EnergyMeter(len(self.channels), start=self.lifetime + away)


def utc_now() -> str:
    """Current time in UTC, ISO 8601."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")
