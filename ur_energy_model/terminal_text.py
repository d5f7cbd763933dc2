"""Text for terminals: names from files and command lines must not control the terminal."""

from __future__ import annotations


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
    """Printable text in which line breaks and tabs are escaped too."""
    return printable(text).replace("\n", r"\n").replace("\t", r"\t")
