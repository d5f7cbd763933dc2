"""Addresses of controllers: what can be one, before anything is connected."""

from __future__ import annotations


def is_address(text: str) -> bool:
    """Whether a text can be the address or the name of a host, as "192.168..10" cannot."""
    try:
        text.encode("idna")
    except UnicodeError:
        return False
    return text.isprintable() and text != "" and not any(map(str.isspace, text))
