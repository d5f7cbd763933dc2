# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Golden files: what was found when they were written, and differences from it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from test.absent_rooms import absent_rooms

GOLDEN = Path(__file__).parent / "golden"
MOST_LINES = 25
NOTHING: Mapping[str, float] = {}
LONG = 8  # lists of more numbers are summed up
RESIDUALS = {
    "mean": 1e-6,
    "max": 1e-6,
    "rms": 1e-6,
    "r2": 1e-4,
    "energy_error_percent": 1e-6,
}
"""Absolute differences of errors [N m, A or W] that no tolerance excludes: what is left of numbers
a million times larger depends on the rounding of a CPU's kernels."""


def check(
    name: str,
    found: Any,
    relative: float = 0.0,
    floor: float = 0.0,
    loose: Mapping[str, float] = NOTHING,
) -> None:
    """Compare with golden/<name>.json, or write that file (see `make`).

    The golden files hold what all rooms of the package add. Where rooms are absent, what
    the file has beyond what was found is theirs, and only the rest is compared.

    Args:
        name: of the golden file.
        found: dictionaries, lists, text, numbers.
        relative: largest difference of a number, as a share of it (in a list: of its
            largest).
        floor: largest absolute difference that is always accepted.
        loose: `relative` for everything below a key.
    """
    path = GOLDEN / f"{name}.json"
    if os.environ.get("UR_ENERGY_WRITE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            json.dumps(found, indent=0, sort_keys=True, ensure_ascii=False) + "\n"
        )
        return
    golden = json.loads(path.read_text())
    found = json.loads(json.dumps(found))
    if absent_rooms():
        golden = in_both(golden, found)
    lines = list(differences(golden, found, relative, floor, loose))
    if lines:
        more = (
            [f"... and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
        )
        shown = "\n".join([*lines[:MOST_LINES], *more])
        pytest.fail(f"{path.name} differs (golden -> now):\n{shown}", pytrace=False)


def agrees(name: str, part: str, found: Any) -> bool:
    """Whether a part of golden/<name>.json is what was found; a file to be written agrees.

    For what settles with time, as the graph of ROS does: wait until it agrees, then `check`
    the whole file, which shows the differences that are left.
    """
    if os.environ.get("UR_ENERGY_WRITE_GOLDEN"):
        return True
    golden = json.loads((GOLDEN / f"{name}.json").read_text())[part]
    found = json.loads(json.dumps(found))
    if absent_rooms():
        golden = in_both(golden, found)
    return golden == found


_CHOICES = "one of "
"""How the constraints of a parameter begin that allow only some values."""


def in_both(golden: Any, found: Any) -> Any:
    """The golden value without what was not found: keys, texts of lists, and choices."""
    if isinstance(golden, dict) and isinstance(found, dict):
        return {
            key: in_both(value, found[key])
            for key, value in golden.items()
            if key in found
        }
    if isinstance(golden, list) and isinstance(found, list):
        if all(isinstance(each, str) for each in golden):
            return [each for each in golden if each in found]
        if len(golden) == len(found):
            return [in_both(*pair) for pair in zip(golden, found, strict=True)]
    texts = isinstance(golden, str) and isinstance(found, str)
    if texts and golden.startswith(_CHOICES) and found.startswith(_CHOICES):
        choices = found.removeprefix(_CHOICES).split(", ")
        both = golden.removeprefix(_CHOICES).split(", ")
        return _CHOICES + ", ".join(each for each in both if each in choices)
    return golden


def differences(
    golden: Any,
    found: Any,
    relative: float,
    floor: float,
    loose: Mapping[str, float] = NOTHING,
    place: str = "",
) -> Iterator[str]:
    """A line for each place that differs."""
    if isinstance(golden, dict) and isinstance(found, dict):
        for key in sorted(golden.keys() | found.keys()):
            here = f"{place}.{key}" if place else key
            if key not in found:
                yield f"{here}: gone (was {golden[key]!r:.200})"
            elif key not in golden:
                yield f"{here}: new ({found[key]!r:.200})"
            else:
                wide = loose.get(key, relative)
                least = max(
                    floor,
                    RESIDUALS.get(key.removeprefix("motion_"), 0.0) if wide else 0.0,
                )
                yield from differences(golden[key], found[key], wide, least, loose, here)
    elif (
        isinstance(golden, list) and isinstance(found, list) and len(golden) == len(found)
    ):
        largest = max((abs(each) for each in golden if _is_number(each)), default=0.0)
        for i, (old, new) in enumerate(zip(golden, found, strict=True)):
            least = max(floor, relative * largest)
            yield from differences(old, new, relative, least, loose, f"{place}[{i}]")
    elif _is_number(golden) and _is_number(found):
        if not math.isclose(golden, found, rel_tol=relative, abs_tol=floor):
            share = abs(found - golden) / max(abs(golden), 1e-300)
            yield f"{place}: {golden!r} -> {found!r} ({share:.1e})"
    elif golden != found or isinstance(golden, bool) != isinstance(found, bool):
        yield f"{place}: {golden!r:.300} -> {found!r:.300}"


def shape(value: Any, place: str = "") -> dict[str, str]:
    """Key paths of a JSON value with their types; elements of lists share one path."""
    kinds: dict[str, set[str]] = {}

    def add(value: Any, place: str) -> None:
        if isinstance(value, Mapping):
            for key, each in value.items():
                add(each, f"{place}.{key}" if place else str(key))
        elif isinstance(value, list) and value:
            for each in value:
                add(each, f"{place}[]")
        else:
            kinds.setdefault(place, set()).add(_kind(value))

    add(value, place)
    return {path: "|".join(sorted(found)) for path, found in kinds.items()}


def numbers(value: Any, leave_out: Sequence[str] = ()) -> Any:
    """Numbers, truths and nulls of a JSON value, without text; long lists are summed up."""
    if isinstance(value, Mapping):
        inner = {
            str(k): numbers(v, leave_out) for k, v in value.items() if k not in leave_out
        }
        return {key: each for key, each in inner.items() if each not in ("", {}, [])}
    if isinstance(value, list):
        if len(value) > LONG and all(map(_is_number, value)):
            mean = math.fsum(value) / len(value)
            rms = math.sqrt(math.fsum(each**2 for each in value) / len(value))
            return {
                "count": len(value),
                "range": [min(value), max(value)],
                "mean_rms": [mean, rms],
            }
        return [numbers(each, leave_out) for each in value]
    return "" if isinstance(value, str) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return "null" if value is None else "truth"
    if isinstance(value, list):
        return "empty list"
    return "number" if _is_number(value) else "text"
