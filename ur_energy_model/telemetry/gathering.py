"""Packets handed on one by one the moment they arrive, and kept until there is a batch of them."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ur_energy_model.errors import ControllerError
from ur_energy_model.telemetry.client import RtdeConnection
from ur_energy_model.telemetry.protocol import Recipe

Watch = Callable[[NDArray[np.void]], None]
"""Is given the records [n >= 1] of packets that have just arrived; it must be quick."""


class PacketGatherer:
    """Lets somebody see each packet at once, while whole batches are decoded together.

    Args:
        connection: started with a batch of 1.
        recipe: of its packets.
        batch: packets to gather before `receive` returns them.
        watch: sees every packet once.
    """

    def __init__(
        self, connection: RtdeConnection, recipe: Recipe, batch: int, watch: Watch
    ) -> None:
        self._connection, self._recipe = connection, recipe
        self._batch, self._watch = batch, watch
        self._error: ControllerError | None = None

    def receive(self, timeout: float) -> NDArray[np.void] | None:
        """The packets of a batch; fewer where time is up or the connection was lost.

        Returns:
            Structured array [n] of the recipe's dtype, None where none came in time.

        Raises:
            ControllerError: the connection is lost, and what came before was returned.
        """
        if self._error is not None:
            raise self._error
        held: list[NDArray[np.void]] = []
        missing = self._batch
        deadline = time.monotonic() + timeout
        while missing > 0:
            try:
                records = self._connection.receive(deadline - time.monotonic())
            except ControllerError as error:
                if not held:
                    raise
                self._error = error
                break
            if records is None:
                break
            self._watch(records)
            held.append(records)
            missing -= len(records)
        return self._recipe.join(held) if held else None
