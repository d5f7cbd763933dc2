# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Colours of the report: one per joint, the same in every figure, in a light and a dark theme.

Hues are distinguishable with any common colour vision deficiency. The contrast with the
background is at least 3:1 for curves and 4.5:1 for text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["light", "dark"]


@dataclass(frozen=True)
class Theme:
    """Colours of one theme, in hexadecimal notation.

    Attributes:
        ground: colour of the page.
        raised: colour of boxes on the page.
        ink: main text, and true values.
        muted: secondary text, and context.
        data: recorded curves.
        grid: lines of the grid.
        accent: colour of the whole arm.
        good: verdict "good".
        fair: verdict "fair".
        poor: verdict "poor".
        joints: colours of the joints from base to tool, repeated for longer arms.
    """

    ground: str
    raised: str
    ink: str
    muted: str
    data: str
    grid: str
    accent: str
    good: str
    fair: str
    poor: str
    joints: tuple[str, ...]

    def joint(self, index: int | None) -> str:
        """Colour of a joint; of the whole arm for None."""
        return self.accent if index is None else self.joints[index % len(self.joints)]


THEMES: dict[ThemeName, Theme] = {
    "light": Theme(
        ground="#ffffff", raised="#f5f7f9", ink="#1d2733", muted="#5d6875", data="#76808c",
        grid="#e3e7ec", accent="#0b7285", good="#2b8a4b", fair="#b07400", poor="#c0392b",
        joints=("#1f6fc4", "#d9600f", "#2b8a4b", "#b5368d", "#7353c9", "#98740a", "#00808c",
                "#8a5438"),
    ),
    "dark": Theme(
        ground="#14191f", raised="#1c232b", ink="#e6eaef", muted="#a3adb9", data="#8d98a5",
        grid="#2c353f", accent="#4cc3d4", good="#62c584", fair="#e0b03c", poor="#f07f72",
        joints=("#66a9f2", "#f59354", "#62c584", "#e67fc3", "#ab91f5", "#d8b33f", "#3fc4cd",
                "#cd9b7d"),
    ),
}  # fmt: skip


def stylesheet() -> str:
    """Colour variables: dark if the reader's system or choice is so, light otherwise."""
    light = _variables("light")
    dark = _variables("dark")
    return (
        f":root{{{light}}}\n"
        f"@media screen{{:root[data-theme=dark]{{{dark}}}}}\n"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{:root:not([data-theme=light]){{{dark}}}}}\n"
    )


def _variables(scheme: ThemeName) -> str:
    """Declarations of the colours of a theme as CSS variables."""
    colours = dict(vars(THEMES[scheme]))
    for j, colour in enumerate(colours.pop("joints")):
        colours[f"joint{j}"] = colour
    declared = "".join(f"--{name}:{colour};" for name, colour in colours.items())
    return f"color-scheme:{scheme};{declared}"
