"""Colours of the report: one per joint, the same in every figure, on light and on dark ground.

Hues are told apart by readers with any common colour vision; each has at least 3:1 contrast with
its ground.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """Colours of one ground.

    Attributes:
        ground: of the page.
        ink, muted, grid: text and axes; recorded data and secondary text; grid lines.
        accent: of the whole arm.
        joints: one per joint, base to tool; a longer arm starts again.
    """

    ground: str
    ink: str
    muted: str
    grid: str
    accent: str
    joints: tuple[str, ...]

    def joint(self, index: int | None) -> str:
        """Colour of a joint, of the whole arm for None."""
        return self.accent if index is None else self.joints[index % len(self.joints)]


THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        ground="#ffffff",
        ink="#1d2733",
        muted="#76808c",
        grid="#e3e7ec",
        accent="#0b7285",
        joints=(
            "#1f6fc4", "#d9600f", "#2b8a4b", "#b5368d", "#7353c9", "#98740a", "#00808c", "#8a5438",
        ),
    ),
    "dark": Theme(
        ground="#14191f",
        ink="#e6eaef",
        muted="#8d98a5",
        grid="#2a323c",
        accent="#4cc3d4",
        joints=(
            "#66a9f2", "#f59354", "#62c584", "#e67fc3", "#ab91f5", "#d8b33f", "#3fc4cd", "#cd9b7d",
        ),
    ),
}  # fmt: skip
