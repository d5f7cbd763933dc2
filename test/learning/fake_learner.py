# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A learner for tests of the process around it: it counts, and does what the samples say."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from test.nodes.moving_arm import ORDER
from ur_energy_model.learning.history import Attempt, Change
from ur_energy_model.learning.worker import Worker
from ur_energy_model.model.energy_model import EnergyModel
from ur_energy_model.model.needs import Need
from ur_energy_model.model.robots import RobotDescription
from ur_energy_model.model.sessions import SessionFriction
from ur_energy_model.telemetry.samples import Telemetry

FRICTION = SessionFriction(np.full(6, 1.25), np.full(6, 0.03), 60.0)
RAISE = 101.0
DIE = 102.0
COMPUTE = 103.0
LEARN = 104.0
NOTICE = 105.0


class FakeLearner:
    """Counts samples; LEARN raises the model's standby power by 1 W."""

    def __init__(
        self, robot: RobotDescription, model: EnergyModel, *, state: bytes | None = None
    ) -> None:
        self.robot = robot
        self.model = model
        self.version = 0
        self.samples = 0
        self._changes: list[Change] = []
        self._learn = False
        if state is not None:
            kept: dict[str, Any] = json.loads(state)
            self.samples = kept["samples"]
            self.version = kept["version"]
            self.model = self._improved()

    @property
    def learned_minutes(self) -> float:
        return self.samples / 30_000

    def update(self, batch: Telemetry) -> None:
        self.samples += len(batch)
        order = float(batch.columns[ORDER].max())  # batches were joined
        if order == RAISE:
            raise ArithmeticError("the samples said so")
        if order == DIE:
            os._exit(7)
        if order == COMPUTE:
            end = time.process_time() + 0.5
            while time.process_time() < end:
                pass
        self._learn |= order == LEARN
        if order == NOTICE:
            change = Change(
                float(batch.time[-1]), None, "standby", 3.0, (2.0, 4.0), "standby +3 W"
            )
            self._changes.append(change)

    def step(self) -> Attempt | None:
        if not self._learn:
            return None
        self._learn = False
        self.version += 1
        self.model = self._improved()
        return Attempt(0.0, self.samples, self.version, 1.0, (1.0,) * 6, True, "said so")

    def needs(self) -> tuple[Need, ...]:
        return (Need(0, "speed", (1.0, 2.0), 0.5, "base above 1 rad/s"),)

    def friction(self) -> SessionFriction:
        return FRICTION

    def take_changes(self) -> tuple[Change, ...]:
        changes = tuple(self._changes)
        self._changes = []
        return changes

    def state(self) -> bytes:
        return json.dumps({"samples": self.samples, "version": self.version}).encode()

    def _improved(self) -> EnergyModel:
        bus = replace(self.model.bus, standby=FIRST_STANDBY + self.version)
        return replace(self.model, bus=bus)


FIRST_STANDBY = 30.0
FAKE = f"{__name__}:FakeLearner"


class LearnerThread:
    """A thread in place of the process that learns: it starts at once, and cannot crash."""

    pid = os.getpid()

    def __init__(self, module: str, theirs: Connection, learner: str) -> None:
        pipe = Connection(os.dup(theirs.fileno()))

        def run() -> None:
            with pipe, suppress(EOFError, OSError):
                Worker(pipe, FakeLearner, lambda: 0.0).run()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def poll(self) -> int | None:
        return None if self._thread.is_alive() else 0

    def wait(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)
