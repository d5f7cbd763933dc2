"""Services of the estimator: reset, interval reading, start of a cycle."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable

from ur_energy_model import topics_and_services as names
from ur_energy_model.energy.live.estimator import LiveEstimator
from ur_energy_model.sinks.arm_actions import ArmActions


class EnergyServices:
    """Answers the services with the present estimator.

    Args:
        add_service: adds a Trigger service to the node.
        estimator: returns the estimator, or raises an error of this package while there is none.
        lock: guards the estimator against the thread that reads the samples.
        actions: what sinks may ask for too.
    """

    def __init__(
        self,
        add_service: Callable[[names.Service, Callable[[], str]], None],
        estimator: Callable[[], LiveEstimator],
        lock: threading.Lock,
        actions: ArmActions,
    ) -> None:
        self._estimator, self._lock, self._actions = estimator, lock, actions
        add_service(names.RESET_ENERGY, self._reset_energy)
        add_service(names.READ_INTERVAL, self._read_interval)
        add_service(names.START_CYCLE, self._start_cycle)

    def _reset_energy(self) -> str:
        self._actions.reset("service call")
        problem = self._estimator().disk_problem
        text = "energy counters are zero"
        return text if problem is None else f"{text}, but not saved: {problem}"

    def _read_interval(self) -> str:
        return json.dumps(self._actions.read_interval())

    def _start_cycle(self) -> str:
        estimator = self._estimator()
        with self._lock:
            estimator.start_cycle()
        return "a cycle starts with the next sample"
