"""Who may do what on the OPC UA server: anonymous clients read, users also write and call."""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import Any

from asyncua import ua
from asyncua.crypto.permission_rules import SimpleRoleRuleset, User, UserRole

_FORBIDDEN = (
    ua.ObjectIds.WriteRequest_Encoding_DefaultBinary,
    ua.ObjectIds.CallRequest_Encoding_DefaultBinary,
)
"""Requests that anonymous clients may not make."""


class Users:
    """Users with passwords, in the form that asyncua asks for.

    Args:
        passwords: by name.
        anonymous: whether clients without a name may read.
    """

    def __init__(self, passwords: Mapping[str, str], *, anonymous: bool) -> None:
        self._passwords = {name: word.encode() for name, word in passwords.items()}
        self._anonymous = anonymous

    def get_user(
        self,
        iserver: Any,
        username: str | None = None,
        password: str | None = None,
        certificate: Any = None,
    ) -> User | None:
        """The user, None to refuse the client."""
        if username is None:
            return User(UserRole.Anonymous) if self._anonymous else None
        expected = self._passwords.get(username)
        # Compared also for an unknown name, so that the time does not tell which names exist.
        right = hmac.compare_digest((password or "").encode(), expected or b"\0")
        return User(UserRole.User, username) if right and expected is not None else None


class ReadingForAnonymous(SimpleRoleRuleset):
    """Users do what asyncua allows them; anonymous clients only what changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        allowed = self._permission_dict[UserRole.User]
        forbidden = {ua.NodeId(number) for number in _FORBIDDEN}
        self._permission_dict[UserRole.Anonymous] = allowed - forbidden
