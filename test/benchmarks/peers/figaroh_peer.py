"""figaroh's base parameters, where it is installed; it needs an environment of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from test.benchmarks.peers.methods import SMOOTHING, same_mounting, torque_per_ampere
from test.benchmarks.peers.recorded import Part, Recorded
from ur_energy_model.identification.base_parameters import snapped_to_axis

Array = NDArray[np.float64]

ENVIRONMENT = Path(__file__).resolve().parents[3] / "build" / "peers"
"""Where bench_base_parameters installs it."""
SCRIPT = Path(__file__).with_name("figaroh_fit.py")
PATIENCE = 60.0


def python_with_figaroh() -> Path | None:
    """A Python that can import it; None without one."""
    if find_spec("figaroh") is not None:
        return Path(sys.executable)
    return ENVIRONMENT / "bin" / "python" if (ENVIRONMENT / "ready").exists() else None


class Figaroh:
    """Base parameters by figaroh from torque = N k_t i, k_t as in the robot file.

    Args:
        python: interpreter that has it.
    """

    name = "figaroh"

    def __init__(self, python: Path) -> None:
        self._python = python

    def predict(self, train: Recorded, judged: Sequence[Recorded]) -> list[Array | None]:
        """As `PerJoint.predict`; None where the mounting differs."""
        per_ampere = torque_per_ampere(train.robot)
        alike = [other for other in judged if same_mounting(train, other)]
        currents = _unfiltered(train, lambda part: part.motion.current)
        payload = _unfiltered(train, lambda part: part.payload_torque)
        data: dict[str, Any] = {
            "robot": train.robot.name,
            "gravity": snapped_to_axis(train.gravity),
            "torque": currents * per_ampere - payload,
        }
        for k, recording in enumerate((train, *alike)):
            for name in ("q", "qd", "qdd"):
                data[f"{name}_{k}"] = _unfiltered(recording, _states(name))
        with tempfile.TemporaryDirectory() as folder:
            given, result = (Path(folder) / name for name in ("in.npz", "out.npz"))
            np.savez(given, **data)
            subprocess.run(
                [self._python, SCRIPT, given, result],
                check=True,
                capture_output=True,
                timeout=PATIENCE,
            )
            with np.load(result) as torques:
                found = [torques[f"torque_{k}"] for k in range(1, 1 + len(alike))]
        out: list[Array | None] = []
        for other in judged:
            if other not in alike:
                out.append(None)
                continue
            pieces = iter(_pieces(other, found[alike.index(other)]))
            out.append(
                other.filtered(lambda part, rest=pieces: next(rest) + part.payload_torque)  # type: ignore[misc]
                / per_ampere
            )
        return out


def _states(name: str) -> Callable[[Part], Array]:
    """Positions, speeds or accelerations; speeds at rest are exactly zero, for their signs."""

    def values(part: Part) -> Array:
        found: Array = getattr(part.motion, name)
        return np.where(np.abs(found) < SMOOTHING, 0.0, found) if name == "qd" else found

    return values


def _unfiltered(recording: Recorded, columns: Callable[[Part], Array]) -> Array:
    """Columns [samples, n] of all parts, wide filter only, ends included."""
    return np.concatenate([columns(part) for part in recording.parts])


def _pieces(recording: Recorded, values: Array) -> list[Array]:
    """Values [samples, n] of all parts, part by part."""
    lengths = [len(part.motion) for part in recording.parts]
    return np.split(values, np.cumsum(lengths)[:-1])
