"""SIGINT and SIGTERM as a request to finish the work in an orderly way."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def on_stop_signal(stop: Callable[[], None]) -> Iterator[None]:
    """Within the block SIGINT and SIGTERM call `stop` and have no other effect.

    This also applies where SIGINT was ignored before, as in background jobs of a shell.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
