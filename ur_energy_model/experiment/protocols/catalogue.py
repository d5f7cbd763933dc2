"""The protocols by name.

s0: Clochiatti et al., Robotica 2024.
s1: Raviola et al., RAAD 2021.
s2: Heredia et al., EcBot.
s3: Battistini, Samori, Subini, slides.
s4: Machines 2024, 12(9), 595.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ur_energy_model.experiment.protocols import (
    exciting_trajectory,
    known_payload,
    pick_and_place,
    random_point_motions,
    sinusoidal_motions,
)
from ur_energy_model.experiment.protocols.outcome import Outcome
from ur_energy_model.experiment.protocols.protocol_run import ProtocolRun
from ur_energy_model.experiment.protocols.published_results import published_results

PROTOCOLS: dict[str, Callable[[ProtocolRun, Mapping[str, Any]], Outcome]] = {
    "s0": random_point_motions.run,
    "s1": exciting_trajectory.run,
    "s2": sinusoidal_motions.run,
    "s3": pick_and_place.run,
    "s4": known_payload.run,
}
"""Functions that run a protocol, by name."""


def run_protocol(name: str, session: ProtocolRun) -> Outcome:
    """Run a protocol, one of `PROTOCOLS`."""
    return PROTOCOLS[name](session, published_results()[name])
