"""`--payload`: what hangs on the flange, as several commands take it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    from ur_energy_model.model.setup import Payload

IDENTIFY = "identify"
"""Word in place of a mass: the payload is identified from the motor currents."""


def add_payload_option(
    parser: argparse.ArgumentParser, *, identified: bool = False, purpose: str
) -> None:
    """Add --payload.

    Args:
        parser: of the command.
        identified: whether the command can identify the payload itself.
        purpose: what the payload is for, the end of the help text.
    """
    word = f", or '{IDENTIFY}' to find it from the currents" if identified else ""
    parser.add_argument(
        "--payload",
        nargs="+",
        metavar="KG",
        help="true payload: mass [kg], and optionally its centre in the flange frame, x y z [m] "
        f"(or in one word: KG,X,Y,Z){word}; {purpose}",
    )


def payload_given(words: Sequence[str] | None) -> Payload | None:
    """The payload that --payload states; None without the option or where it is to be identified.

    Raises:
        InputError: not a mass, or a mass and a centre.
    """
    import numpy as np

    from ur_energy_model.model.setup import Payload
    from ur_energy_model.reading.ranges import LENGTH, PAYLOAD_MASS

    if words is None or is_identified(words):
        return None
    try:
        numbers = [float(number) for word in words for number in word.split(",")]
    except ValueError:
        numbers = []
    far = max(map(abs, numbers[1:]), default=0.0)
    right = len(numbers) in (1, 4) and all(map(math.isfinite, numbers))
    if not right or not 0 <= numbers[0] <= PAYLOAD_MASS.high or far > LENGTH.high:
        raise InputError(
            "--payload",
            f"'{' '.join(words)}' is not a mass",
            "give KG, or KG and the centre X Y Z, or KG,X,Y,Z in one word",
        )
    return Payload(numbers[0], np.array(numbers[1:] or [0.0, 0.0, 0.0]))


def is_identified(words: Sequence[str] | None) -> bool:
    """Whether --payload asks to identify the payload."""
    return words is not None and list(words) == [IDENTIFY]
