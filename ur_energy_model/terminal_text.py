"""Text for terminals: names from files and command lines must not control the terminal."""

from __future__ import annotations

_LONGEST = 1000
"""Most characters of a line; of a longer one, its middle is left out."""


def printable(text: str) -> str:
    """Text with escape sequences for what terminals should not print.

    These are control characters other than line breaks and tabs, characters that change the
    direction of text, and lone surrogates.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\n\t" else each.encode("unicode_escape").decode()
        for each in text
    )


def one_line(text: str) -> str:
    """Printable text of bounded length in which line breaks and tabs are escaped too."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")


def span(seconds: float) -> str:
    """A time as text, in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
