# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Options: one table a feature, from which command line, ROS parameters and launch arguments come.

A table is a frozen dataclass whose fields are made with `option`:

    @dataclass(frozen=True)
    class MeterOptions:
        rate: float = option(10.0, "rate of readings", unit="Hz", limits=(0.1, 50.0))
        files: tuple[Path, ...] = option((), "files to write", flags=("--file",))

Its objects hold the values, with their types. `add_options` and `given` make and read
options of a command; `options_of` lists what nodes declare as ROS parameters and launch
files as arguments, and `table_of` makes an object of their values. A field of the type of
another table contains all of its options.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from ipaddress import ip_address
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import SplitResult, urlsplit

from ur_energy_model.errors import InputError, UrEnergyError
from ur_energy_model.files import user_path
from ur_energy_model.typed_numbers import likely_form, right_form

_NO_HOST = re.compile(r"[\s/@\[\]?#]")
"""What no address of a host contains."""
Value: TypeAlias = bool | int | float | str | list[str]
"""Value of a ROS parameter; ROS has no type for an empty list, which is [""]."""
N = TypeVar("N", int, float)
T = TypeVar("T")


@dataclass(frozen=True)
class Option:
    """One option of a table."""

    name: str  # of the field and of the ROS parameter
    # bool, int, float, str or Path: the type of the value, or of its items. The type
    # Literal[...] of a field has its choices
    kind: type
    default: Any  # MISSING where the user must state it
    help: str  # what it does, without a full stop
    # whether the value is a tuple, and the option of the command line may be repeated
    many: bool = False
    unit: str = ""  # of a number
    limits: tuple[float, float] | None = None  # inclusive range of a number
    choices: tuple[str, ...] = ()  # allowed texts
    address: bool = False  # whether the text is the address of a host
    # whether the ROS parameter takes effect while the node is configured
    changeable: bool = False
    # name of another option and the value of it without which this one has no effect
    only_with: tuple[str, str] | None = None
    # on the command line, () for none; messages that name them name the parameter in a
    # node
    flags: tuple[str, ...] = ()
    # what stands for the value in the help of the command line
    metavar: str | None = None
    # value of the option without a value; None where it needs one
    bare: str | None = None
    # whether launch files that take a whole table have it as an argument
    launch: bool = False

    @property
    def parameter(self) -> Value:
        """The default as the value of a ROS parameter; its type is that of the parameter."""
        if self.many:
            return [str(item) for item in self.default] or [""]
        if self.kind in (str, Path):
            return "" if self.default is None else str(self.default)
        value: Value = self.default
        return value

    @property
    def is_switch(self) -> bool:
        """Whether it is a text that YAML, and so the command line of ROS, may read as a bool."""
        return {"on", "off"} <= set(self.choices)

    @property
    def note(self) -> str:
        """Unit, choices and range in brackets, "" without any."""
        notes = [self.unit] if self.unit else []
        if self.choices:
            notes.append(", ".join(self.choices))
        if self.limits is not None:
            notes.append(f"{self.limits[0]:.12g} to {self.limits[1]:.12g}")
        return f" ({'; '.join(notes)})" if notes else ""

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if self.many:
            return "a list of text, such as \"['first', 'second']\""
        if self.kind is bool:
            return "true or false"
        if self.kind in (str, Path):
            return "text, in quotes if it has the form of a number"
        number = "a whole number" if self.kind is int else "a number"
        if self.limits is None:
            return number
        return f"{number}, {self.limits[0]:.12g} to {self.limits[1]:.12g}"

    def normalized(self, value: Any) -> Any:
        """The value with on and off as text, which YAML reads as true and false, and 50 as 50.0."""
        if self.is_switch and isinstance(value, bool):
            return "on" if value else "off"
        if self.kind is float and type(value) is int:
            return float(value)
        return value

    def problem(self, value: object) -> str | None:
        """Reason why the value of a ROS parameter is refused; None if it is accepted."""
        kinds = (int, float) if self.kind is float else (type(self.parameter),)
        of_text = not isinstance(value, list) or all(
            isinstance(item, str) for item in value
        )
        if type(value) not in kinds or not of_text:
            of_number = self.kind in (int, float) and isinstance(value, str)
            hint = number_hint(str(value), self.unit) if of_number else ""
            return f"{self.name} must be {self.wanted}, not {value!r}{hint}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if self.address and not is_address(str(value)):
            return f"{self.name} must be the address of a host, not {value!r}{address_hint(value)}"
        if isinstance(value, int | float) and self.limits is not None:
            low, high = self.limits
            if not low <= value <= high:
                meant = likely_form(value, self.unit, low, high)
                hint = "" if meant is None else f"; write {meant}"
                return f"{self.name} must be between {low:g} and {high:g}, not {value:g}{hint}"
        if self.kind is Path:
            try:
                self.typed(value)
            except UrEnergyError as error:
                return f"{self.name}: {error}"
        return None

    def typed(self, value: Any) -> Any:
        """The value of the table's field that the value of a ROS parameter stands for.

        Raises:
            InputError: a path in the home folder of a user who does not exist.
        """
        if self.many:
            return tuple(map(self._item, filter(None, value)))
        return self._item(value) if value != "" or self.default is not None else None

    def _item(self, value: Any) -> Any:
        return user_path(value) if self.kind is Path else value

    def parse(self, text: str) -> Value:
        """The value of a ROS parameter as the argument of a launch file.

        The items of a list are separated by commas, or it is a list of YAML: [a, "b",
        'c'].

        Raises:
            ValueError: the text is not of the type, or the value is not allowed.
        """
        value: Value = text
        if self.many:
            value = self._items(text) or [""]
        elif self.kind is bool:
            if text not in ("true", "false"):
                raise ValueError(f"{self.name}:={text} is not true or false")
            value = text == "true"
        elif self.kind in (int, float):
            try:
                value = self.kind(text)
            except ValueError as error:
                hint = number_hint(text, self.unit)
                raise ValueError(
                    f"{self.name}:={text} is not {self.wanted}{hint}"
                ) from error
        if problem := self.problem(value):
            raise ValueError(problem)
        return value

    def _items(self, text: str) -> list[str]:
        """Items of a list as typed, without empty ones."""
        import yaml  # takes long, and commands do not need it

        items: object = text.split(",")
        if text.lstrip()[:1] in ("[", "'", '"'):
            try:
                # BaseLoader leaves 1e3 and on as they are.
                items = yaml.load(f"[{text}]", yaml.BaseLoader)
            except yaml.YAMLError:
                items = None
            if isinstance(items, list) and len(items) == 1 and isinstance(items[0], list):
                items = items[0]
        if not isinstance(items, list) or not all(
            isinstance(item, str) for item in items
        ):
            raise ValueError(f"{self.name}:={text} is not {self.wanted}")
        return [item.strip() for item in items if item.strip()]

    def ignored(self, values: object) -> str | None:
        """Line that states that a value was given but has no effect; None if it has one.

        Args:
            values: object of the table.
        """
        if self.only_with is None or getattr(values, self.name) == self.default:
            return None
        name, wanted = self.only_with
        if (found := getattr(values, name)) == wanted:
            return None
        return f"{self.name} is ignored: it needs {name}:={wanted}, and {name} is {found}"

    def add_to(self, parser: argparse._ActionsContainer) -> None:
        """Add the option to a command."""
        words: dict[str, Any] = {"dest": self.name, "help": self.help.replace("%", "%%")}
        if self.kind is bool:
            parser.add_argument(*self.flags, action="store_true", **words)
            return
        words |= {"metavar": self.metavar, "default": self.default}
        if self.choices:
            words["choices"] = self.choices
        elif self.address:
            words["type"] = host_address
        elif self.kind in (int, float):
            words["type"] = number(self.kind, *(self.limits or (-1e9, 1e9)), self.unit)
        elif self.kind is Path:
            words["type"] = Path
        if self.bare is not None:
            words |= {"nargs": "?", "const": self.bare}
        if self.many:
            words |= {"action": "append", "default": list(self.default)}
        elif self.default is MISSING:
            words |= {"default": None, "required": True}
        elif self.default not in (None, ""):
            words["help"] += " (default: %(default)s)"
        parser.add_argument(*self.flags, **words)


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    flags: tuple[str, ...] | None = None,
    **named: Any,
) -> Any:
    """A field of a table.

    Args:
        default: MISSING where the user must state it.
        help: what it does, without a full stop.
        flags: default the name of the field, as --name.
        named: further attributes of Option: unit, limits, choices, address, changeable,
            only_with, metavar, bare, launch.
    """
    return field(default=default, metadata={"help": help, "flags": flags, **named})


def options_of(table: type) -> tuple[Option, ...]:
    """All options of a table, in its order."""
    hints = get_type_hints(table)
    found: list[Option] = []
    for each in fields(table):
        kind = hints[each.name]
        named = dict(each.metadata)
        if isinstance(kind, type) and is_dataclass(kind):
            found += options_of(kind)
            continue
        many = get_origin(kind) is tuple
        if get_origin(kind) is Literal:
            kind, named["choices"] = str, get_args(kind)
        (kind,) = [one for one in get_args(kind) if one not in (NoneType, ...)] or [kind]
        if named["flags"] is None:
            named["flags"] = (f"--{each.name.replace('_', '-')}",)
        found.append(Option(each.name, kind, each.default, many=many, **named))
    return tuple(found)


def table_of(table: type[T], values: Mapping[str, Any]) -> T:
    """An object of a table.

    Args:
        table: the dataclass.
        values: of its options by name, with the types of the fields; others keep their
            default.
    """
    hints = get_type_hints(table)
    found = {}
    for each in fields(table):  # type: ignore[arg-type]
        if is_dataclass(kind := hints[each.name]):
            found[each.name] = table_of(kind, values)  # type: ignore[arg-type]
        elif each.name in values:
            found[each.name] = values[each.name]
    return table(**found)


# Options of a command.


def add_options(parser: argparse._ActionsContainer, table: type) -> None:
    """Add the options of a table that have flags."""
    for each in options_of(table):
        if each.flags:
            each.add_to(parser)


def given(table: type[T], options: argparse.Namespace) -> T:
    """The object of a table that the options of a command state."""
    values = {
        each.name: tuple(value) if isinstance(value, list) else value
        for each in options_of(table)
        for value in [getattr(options, each.name, each.default)]
    }
    return table_of(table, values)


def number(
    kind: type[N], least: float, most: float, unit: str = ""
) -> Callable[[str], N]:
    """A finite number within a range, as a type of arguments.

    `unit` is that of the option; a text with another unit is refused with the number to
    write.
    """

    def read(text: str) -> N:
        try:
            value = kind(text)
        except ValueError:
            word = "a whole number" if kind is int else "a number"
            hint = number_hint(text, unit)
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} is not {word}{hint}"
            ) from None
        if not least <= value <= most:
            meant = likely_form(value, unit, least, most)
            hint = "" if meant is None else f"; write {meant}"
            raise argparse.ArgumentTypeError(
                f"{text[:40]!r} must be {least:g} to {most:g}{hint}"
            )
        return value

    return read


def number_hint(text: str, unit: str) -> str:
    """What to write in place of a text that is no number, "" if that is not known."""
    right = right_form(text, unit)
    return "" if right is None else f", write {right}"


def host_address(text: str) -> str:
    """An address or name of a host, as a type of arguments."""
    if not is_address(text):
        problem = f"{text!r} is not an address of a host{address_hint(text)}"
        raise argparse.ArgumentTypeError(problem)
    return text


def address_hint(text: object) -> str:
    """What to write in place of a URL, or of an address with a port; "" for other texts."""
    host = None
    if is_address(str(text)):
        return ""
    with suppress(ValueError):
        host = urlsplit(str(text) if "//" in str(text) else f"//{text}").hostname
    found = host is not None and host != text and is_address(host)
    return f", write {host} (without protocol, port and path)" if found else ""


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    with suppress(ValueError):
        return ip_address("127.0.0.1" if host == "localhost" else host).is_loopback
    return False


def is_address(text: str) -> bool:
    """Whether a text can be the address or the name of a host, as "192.168..10" cannot.

    A URL, or an address with a port, is none; of colons, only IPv6 addresses have any.
    """
    try:
        text.encode("idna")
        if ":" in text:
            ip_address(text.partition("%")[0])
    except ValueError:  # of idna a UnicodeError
        return False
    return text.isprintable() and text != "" and not _NO_HOST.search(text)


def split_url(
    option: str, url: str, schemes: Collection[str], kind: str, form: str, secrets: str
) -> SplitResult:
    """Parts of a URL that the user gives; InputError for one that is not of this kind.

    `form` is how to write it, `secrets` where user name and password belong; the message
    never repeats a password.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        raise InputError(option, "the URL is not valid", form) from None
    if "@" in (parts.netloc or url):
        problem = "a URL must not hold a user name or password, which all users of this machine "
        raise InputError(option, f"{problem}can read", secrets)
    if (
        parts.scheme not in schemes
        or not parts.netloc
        or not (host is None or is_address(host))
    ):
        raise InputError(option, f"'{url}' is not the URL of {kind}", form)
    return parts
