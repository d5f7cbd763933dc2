"""Provenance of a recording as the key-value pairs (custom data) of a bag, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import hypot
from typing import Any

from ur_energy_model import __version__
from ur_energy_model.errors import RecordingError
from ur_energy_model.reading.ranges import GRAVITY
from ur_energy_model.reading.yaml_tree import excerpt
from ur_energy_model.telemetry.samples import Gap, RecordingInfo

RECORD_NAME = "ur_energy_model"
GAP_RECORD_NAME = "ur_energy_model.gap"
PROGRAM_RECORD_NAME = "ur_energy_model.program"
"""Of an index in the file, and the name of the program from that sample on."""
HOST = "host"
"""Key of the computer that wrote a bag."""
BUDGET = "budget_path"
"""Key of the path at which a bag counts for the budget of its folder; others are never deleted."""
REMOVED = "removed_samples"
"""Key of the number of samples whose files were deleted for that budget."""
MAX_GAPS = 500_000
"""Most gaps of a bag that are kept until their samples are read."""
MAX_PROVENANCE = 10_000
"""Most key-value pairs about a recording."""
MAX_GAPS_AS_TEXT = 1000
"""Most gaps in metadata.yaml, which is for people; all are in the storage files."""
_NAMES = {
    "namespace": re.compile(r"(?!.{256})(?:/[A-Za-z_][A-Za-z0-9_]*)*"),
    "tf_prefix": re.compile(r".{0,255}"),
}
_GRAVITY = (GRAVITY.low, GRAVITY.high)
"""Plausible magnitude of the configured gravity vector [m/s^2]."""
_CENTER_OF_MASS = (0.0, 10.0)
"""Plausible distance of a payload's centre of mass from the flange [m]."""


def custom_of_info(
    info: RecordingInfo, fields: Sequence[str], *, host_clock: bool
) -> dict[str, str]:
    """Provenance of a recording as key-value pairs; what is unknown is left out."""
    entries: dict[str, Any] = {
        "robot": info.robot,
        "serial": info.serial,
        "controller_version": info.controller_version,
        "rate": info.rate,
        "fields": ",".join(fields),
        "gravity": info.gravity,
        "payload_mass": info.payload_mass,
        "payload_center_of_mass": info.payload_center_of_mass,
        "simulated": info.simulated,
        "program": info.program,
        "namespace": info.namespace or None,
        "tf_prefix": info.tf_prefix or None,
        "recorded_from": info.source,
        "stamps": "host" if host_clock else "controller",
        "package_version": __version__,
        "extra": dict(info.extra) or None,
    }
    return {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in entries.items()
        if value is not None
    }


def info_of_custom(custom: Mapping[str, str], source: str) -> RecordingInfo:
    """Provenance of a recording; what is missing is unknown.

    An implausible payload or gravity is unknown too: a controller may be configured wrongly, and
    the samples are good all the same.

    Raises:
        RecordingError: a malformed value.
    """
    try:
        extra = json.loads(custom.get("extra", "{}"))
        return RecordingInfo(
            source=source,
            robot=custom.get("robot"),
            serial=custom.get("serial"),
            controller_version=custom.get("controller_version"),
            rate=_rate(custom),
            gravity=_vector(custom, "gravity", _GRAVITY),
            payload_mass=_within(_number(custom, "payload_mass"), -1e-9, 3e3),
            payload_center_of_mass=_vector(custom, "payload_center_of_mass", _CENTER_OF_MASS),
            simulated=json.loads(custom.get("simulated", "false")) is True,
            program=custom.get("program"),
            namespace=name_of_custom(custom, "namespace"),
            tf_prefix=name_of_custom(custom, "tf_prefix"),
            removed=removed_samples(custom),
            extra={str(key): str(value) for key, value in extra.items()},
        )
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise RecordingError(
            source,
            f"its recording information is malformed ({excerpt(str(error))})",
            "record again, or import the CSV again",
        ) from None


def name_of_custom(custom: Mapping[str, str], key: str) -> str:
    """The `namespace` or `tf_prefix` of a recording; "" where it has none that can be."""
    name = custom.get(key, "")
    return name if _NAMES[key].fullmatch(name) else ""


def removed_samples(custom: Mapping[str, str]) -> int:
    """Number of samples that were deleted for a budget; 0 where it is missing or malformed."""
    text = custom.get(REMOVED, "")
    return int(text) if re.fullmatch("[0-9]{1,18}", text) else 0


def _rate(custom: Mapping[str, str]) -> float | None:
    rate = _number(custom, "rate")
    if rate is not None and not 0.0 < rate <= 1e5:
        raise ValueError(f"rate {rate:g}")
    return rate


def _number(custom: Mapping[str, str], key: str) -> float | None:
    """Number of a key, None if the key is missing."""
    return float(json.loads(custom[key])) if key in custom else None


def _within(value: float | None, lowest: float, highest: float) -> float | None:
    """The value if it is within a range, else None (also for NaN)."""
    return value if value is not None and lowest <= value <= highest else None


def _vector(
    custom: Mapping[str, str], key: str, length: tuple[float, float]
) -> tuple[float, float, float] | None:
    """Vector of a key, None if it is missing or its length is out of range."""
    if key not in custom:
        return None
    x, y, z = (float(value) for value in json.loads(custom[key]))
    return None if _within(hypot(x, y, z), *length) is None else (x, y, z)


def custom_of_gap(gap: Gap) -> dict[str, str]:
    """A gap as key-value pairs."""
    return {
        key: value if key == "cause" else json.dumps(value) for key, value in asdict(gap).items()
    }


def gap_of_custom(custom: Mapping[str, str]) -> Gap | None:
    """A gap from key-value pairs, None if they are malformed."""
    try:
        return Gap(
            index=int(json.loads(custom["index"])),
            start=float(json.loads(custom["start"])),
            end=float(json.loads(custom["end"])),
            missing=int(json.loads(custom["missing"])),
            cause=custom["cause"],
            away=_number(custom, "away") if custom.get("away", "null") != "null" else None,
        )
    except (KeyError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def program_of_custom(custom: Mapping[str, str]) -> tuple[int, str | None] | None:
    """Index and name of a program from key-value pairs, None if they are malformed."""
    try:
        return int(custom["index"]), custom["name"] or None
    except (KeyError, ValueError):
        return None


def custom_of_program(index: int, name: str | None) -> dict[str, str]:
    """Index and name of a program as key-value pairs."""
    return {"index": str(index), "name": name or ""}


def gaps_to_text(gaps: Sequence[Gap]) -> str:
    """The first gaps as JSON."""
    return json.dumps([asdict(gap) for gap in gaps[:MAX_GAPS_AS_TEXT]])
