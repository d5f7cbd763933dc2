# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Addresses of hosts and URLs that users type: what they are, and what to write instead.

A text is an address if it can be the name of a host or an IP address. Whether the host
exists is not checked: this is refused by the connection itself.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address
from urllib.parse import SplitResult, urlsplit

from ur_energy_model.errors import InputError

_NO_HOST = re.compile(r"[\s/@\[\]?#]")
"""Characters that no address of a host contains."""


def host_address(text: str) -> str:
    """The text, if it is the address or the name of a host.

    Args:
        text: address or name as the user types it, such as "192.168.0.10" or
            "robot-1.local".

    Raises:
        ValueError: it is not; for a URL, the message has the address to write.
    """
    if not is_address(text):
        raise ValueError(f"{text!r} is not an address of a host{address_hint(text)}")
    return text


def address_hint(text: object) -> str:
    """What to write in place of a URL, or of an address with a port; "" for other texts.

    Args:
        text: what a user stated as the address of a host.

    Returns:
        The end of a message, such as ", write 10.0.0.1 (without protocol, port and
        path)".
    """
    stated = str(text)
    if is_address(stated):
        return ""
    url = stated if "//" in stated else f"//{stated}"
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return ""
    if host is None or host == stated or not is_address(host):
        return ""
    return f", write {host} (without protocol, port and path)"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address: 127.0.0.1, ::1 or localhost."""
    if host == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return False


def is_address(text: str) -> bool:
    """Whether a text can be the address or the name of a host, as "192.168..10" cannot.

    A URL and an address with a port are not: a text with a colon is an address only if it
    is an IPv6 address, with or without a zone (fe80::1%eth0).
    """
    try:
        text.encode("idna")  # raises UnicodeError, which is a ValueError
        if ":" in text:
            without_zone = text.partition("%")[0]
            ip_address(without_zone)
    except ValueError:
        return False
    return text.isprintable() and text != "" and not _NO_HOST.search(text)


def split_url(
    option: str, url: str, schemes: Collection[str], kind: str, form: str, secrets: str
) -> SplitResult:
    """Parts of a URL that a user states.

    Args:
        option: option of the command line that has the URL, such as "--meter".
        url: URL as the user types it.
        schemes: schemes that are allowed, such as "http".
        kind: what the URL is of, such as "a meter".
        form: how to write such a URL.
        secrets: place where user name and password belong.

    Raises:
        InputError: it is not such a URL, or has a user name or password. The message
            never repeats a password.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port  # raises for what is no number
    except ValueError:
        raise InputError(option, "the URL is not valid", form) from None
    if "@" in (parts.netloc or url):
        problem = (
            "a URL must not hold a user name or password, which all users of this machine "
            "can read"
        )
        raise InputError(option, problem, secrets)
    is_of_kind = parts.scheme in schemes and parts.netloc != ""
    if not is_of_kind or (host is not None and not is_address(host)):
        raise InputError(option, f"'{url}' is not the URL of {kind}", form)
    return parts
