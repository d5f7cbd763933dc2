# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""A source that does what a test tells it, and batches for it."""

import queue as queues
import threading
import time
from dataclasses import replace

import numpy as np

from ur_energy_model.telemetry.samples import RecordingInfo
from ur_energy_model.telemetry.source import LinkStatus

FIELDS = ("actual_q", "robot_mode", "safety_mode")


class ScriptedSource:
    """Hands out what a test gives it, and raises what a test gives it."""

    def __init__(self, info=None):
        self.info = info or RecordingInfo(
            source="script", robot="ur5e", serial="1", rate=500.0
        )
        self.fields = ("timestamp", *FIELDS)
        self.status = LinkStatus()
        self.events = []
        self._items = queues.Queue()
        self._given = 0
        self._taken = threading.Semaphore(0)

    def give(self, *items):
        """Returns once all of it was taken, and the last of it was dealt with."""
        for item in items:
            self._items.put(item)
        self._items.put(None)
        for _ in range(len(items) + 1):
            assert self._taken.acquire(timeout=240)

    def give_last(self, item):
        """Returns at once: nobody may read after it."""
        self._items.put(item)

    def read(self, timeout):
        try:
            item = self._items.get(timeout=timeout)
        except queues.Empty:
            return None
        self._taken.release()
        if isinstance(item, BaseException):
            raise item
        return item

    def take_events(self):
        events = self.events
        self.events = []
        return events

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def batches(count, first=0, modes=None):
    """Batches of 25 samples, from a sample on, with constant modes or one of these each."""
    from test.telemetry.conftest import make_telemetry  # which imports this module

    made = []
    for i in range(count):
        batch = make_telemetry(25, fields=FIELDS, first=first + 25 * i)
        columns = dict(batch.columns)
        columns["robot_mode"] = np.full(25, 7.0 if modes is None else modes[i])
        columns["safety_mode"] = np.full(25, 1.0)
        made.append(replace(batch, columns=columns))
    return made


def wait_for(condition, timeout=240):
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)
