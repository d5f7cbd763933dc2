"""Text for people; names from files and command lines must not control their terminal."""

from __future__ import annotations

import re

_LONGEST = 1000
"""Most characters of a line; of a longer one, its middle is left out."""
_SIGNED_ZERO = re.compile(r"(?<![\w.,/\\-])[-−+](?=0(?:\.0+)?(?!\.?\d|[\w-]))")


def unsigned_zeros(text: str) -> str:
    """Text in which numbers that are rounded to zero have no sign: "0.0 W" for "-0.0 W"."""
    return _SIGNED_ZERO.sub("", text)


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
    """Printable text of bounded length, line breaks and tabs escaped, zeros without sign."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return printable(unsigned_zeros(text)).replace("\n", r"\n").replace("\t", r"\t")


def span(seconds: float) -> str:
    """A time as text, in the unit that suits it."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
