"""`--payload`: the payload on the flange, as several subcommands take it."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ur_energy_model.errors import InputError

if TYPE_CHECKING:
    from ur_energy_model.model.energy_model import EnergyModel
    from ur_energy_model.model.setup import Payload

IDENTIFY = "identify"
"""Word in place of a mass: the payload is identified from the motor currents."""


def add_payload_option(
    parser: argparse._ActionsContainer, default: str, *, identifiable: bool = False
) -> None:
    """Add --payload.

    Args:
        parser: of the subcommand, or a group of its options.
        default: what applies without the option.
        identifiable: whether the subcommand can identify the payload itself.
    """
    word = f", or '{IDENTIFY}' to identify it from the currents" if identifiable else ""
    parser.add_argument(
        "--payload",
        nargs="+",
        action=_Payload,
        identifiable=identifiable,
        metavar="KG",
        help="actual payload: mass [kg], optionally followed by its centre of mass X Y Z in the "
        f"flange frame [m], also in one word as KG,X,Y,Z{word} (default: {default})",
    )


class _Payload(argparse.Action):
    """Refuses words that state no payload, as a usage error."""

    def __init__(self, *arguments: Any, identifiable: bool, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._identifiable = identifiable

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Keep the words."""
        if is_identified(values) and not self._identifiable:
            raise argparse.ArgumentError(self, "cannot be identified here; give KG")
        try:
            payload_given(values)
        except InputError as error:
            raise argparse.ArgumentError(self, f"{error.problem}; {error.remedy}") from None
        setattr(namespace, self.dest, values)


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
    farthest = max(map(abs, numbers[1:]), default=0.0)
    valid = len(numbers) in (1, 4) and all(map(math.isfinite, numbers))
    if not valid or not 0 <= numbers[0] <= PAYLOAD_MASS.high or farthest > LENGTH.high:
        raise InputError(
            "--payload",
            f"'{' '.join(words)}' is not a mass",
            "give KG, or KG and the centre X Y Z, or KG,X,Y,Z in one word",
        )
    return Payload(numbers[0], np.array(numbers[1:] or [0.0, 0.0, 0.0]))


def is_identified(words: Sequence[str] | None) -> bool:
    """Whether --payload asks to identify the payload."""
    return words is not None and list(words) == [IDENTIFY]


def with_given_payload(model: EnergyModel, words: Sequence[str] | None) -> EnergyModel:
    """The model, with the payload of --payload, if any, in place of its own.

    Raises:
        InputError: the payload is not valid.
    """
    payload = payload_given(words)
    return model if payload is None else model.with_payload(payload)
