"""Names of new bags."""

from __future__ import annotations

import re
import time
from pathlib import Path

from ur_energy_model.errors import InputError
from ur_energy_model.telemetry.samples import RecordingInfo

DEFAULT_NAME = "{robot}_{date}_{time}"
_KEYS = ("robot", "serial", "date", "time", "number")


def bag_name(template: str, info: RecordingInfo, folder: Path, now: float | None = None) -> str:
    """Name of a new bag that does not exist in the folder.

    Args:
        template: text with {robot}, {serial}, {date}, {time} (local), {number} (first free one).
        info: of the recording.
        folder: where the bag goes.
        now: time for the name [s since the epoch]; None for the present.

    Raises:
        InputError: the template has an unknown key, or makes no file name.
    """
    local = time.localtime(now)
    values = {
        "robot": info.robot or "robot",
        "serial": info.serial or "unknown",
        "date": time.strftime("%Y%m%d", local),
        "time": time.strftime("%H%M%S", local),
    }
    number = 0
    while True:
        try:
            name = template.format(**values, number=number)
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise InputError(
                template,
                f"is not a bag name template ({error})",
                "use " + ", ".join(f"{{{key}}}" for key in _KEYS),
                field="name",
            ) from None
        name = re.sub(r"[^\w.+-]", "_", name)
        if name.strip(".") == "":
            raise InputError(template, "makes an empty bag name", "add a word", field="name")
        if number and "{number" not in template:
            name = f"{name}_{number}"
        if not (folder / name).exists():
            return name
        number += 1
