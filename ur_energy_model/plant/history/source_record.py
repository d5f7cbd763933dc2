"""SourceRecord: what the store keeps of a source, beside its rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class SourceRecord:
    """A source that is complete in the store.

    Attributes:
        source: SHA-256 of the bag, or name of the live writer.
        bag: absolute path where it was read.
        arm: name of the arm.
        robot: its type.
        model: that its energies were computed with, see `model_key`.
        start, end: host time of the first and last sample [ns since 1970 UTC].
        host_time: whether these are times of day; False where only the controller's clock is known.
        rows: number of rows by table.
        energy: sum of total_energy over the rows of `seconds` [J].
        accounted: time integrated over [s].
        left_out: time that other sources had covered [s].
        files: names in the store.
    """

    source: str
    bag: str
    arm: str
    robot: str
    model: str
    start: int
    end: int
    host_time: bool
    rows: dict[str, int]
    energy: float
    accounted: float
    left_out: float
    files: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """As a file of the store."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes) -> SourceRecord:
        """From a file of the store.

        Raises:
            ValueError, TypeError: it is none.
        """
        values = json.loads(content)
        return cls(**{**values, "files": tuple(values["files"])})
