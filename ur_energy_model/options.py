# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Options: one table a feature, from which command line, ROS parameters and launch arguments come.

A table is a frozen dataclass whose fields are made with `option`:

    @dataclass(frozen=True, kw_only=True)
    class MeterOptions:
        rate: float = option(10.0, "rate of readings", unit="Hz", limits=(0.1, 50.0))
        files: tuple[Path, ...] = option((), "files to write", flags=("--file",))

Its objects hold the values, with their types. `cli.options` makes and reads the options of
a command; `options_of` lists what nodes declare as ROS parameters and launch files as
arguments, and `table_of` makes an object of their values. A field of the type of another
table contains all of its options; `part` makes it, with a heading for the help.

The type of a field states what the command line takes:

    float, int, str, Path             one value
    bool                              a switch; one that is on by default has --no-NAME
    Literal["a", "b"]                 one of these words
    tuple[float, float, float]        three values after one flag
    tuple[Path, ...]                  a flag that may be repeated, or several arguments
    tuple[tuple[float, float], ...]   a flag with two values that may be repeated
    any type | None                   the same; None without it
    any type, with `parse=`           what the function makes of the text
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from ur_energy_model.addresses import address_hint, host_address, is_address
from ur_energy_model.errors import UrEnergyError, closest
from ur_energy_model.files import user_path
from ur_energy_model.typed_numbers import likely_form, number, number_hint

if TYPE_CHECKING:  # for commands only, and lists of them do without
    import argparse

_ANY_NUMBER = (-1e9, 1e9)  # range of numbers without limits of their own
Value: TypeAlias = bool | int | float | str | list[str]
"""Value of a ROS parameter; ROS has no type for an empty list, which is [""]."""
T = TypeVar("T")


class _Arguments(Protocol):
    """A parser of argparse, or a group of its arguments."""

    def add_argument(self, *names: str, **how: Any) -> argparse.Action:
        """See argparse.ArgumentParser.add_argument."""
        ...


@dataclass(frozen=True)
class Option:
    """One option of a table.

    Attributes:
        name: name of the field and of the ROS parameter.
        kind: bool, int, float, str or Path: the type of the value, or of its items; object
            where `parse_text` makes the value.
        default: MISSING where the user must state it.
        help: what it does, without a full stop.
        many: whether the value is a tuple of any length, and the option of the command
            line may be repeated.
        count: values of one use of the option, such as 3 for X Y Z.
        unit: unit of a number.
        limits: inclusive range of a number.
        allowed: texts that are allowed, or a function that returns them, for what takes
            long to find out; () for any.
        address: whether the text is the address of a host.
        changeable: whether the ROS parameter takes effect while the node is configured.
        only_with: name of another option, and its value without which this one has no
            effect.
        flags: flags on the command line; () for none. Messages that name them name the
            parameter in a node.
        metavar: what stands for the value in the help of the command line; for several
            values one word each.
        bare: value of the option without a value; None where it needs one.
        launch: whether launch files that take a whole table have it as an argument.
        positional: whether the command line has it as an argument without a flag.
        several: whether several words may follow the flag. They are the items of a tuple,
            or with `parse_text` the words of one value.
        parse_text: makes the value of its text on the command line, and raises ValueError for
            texts that are not one; None for what the type of the field states.
        heading: title of the group in the help of the command, "" for none.
        one_of: name of a set of options that exclude each other, "" for none.
        needed: whether one option of that set must be there.
        holds: what a path holds, such as "recording" or "model", so that a command can
            refuse the one in place of the other; "" where it does not matter.
        offered: words that the completion of a shell offers, beside which others are
            allowed.
        used_by: "module:function" that uses each value where a command or node starts,
            before anything else does, such as a file that adds choices to other options;
            "" for none. The value of such a ROS parameter cannot be changed later.
        more_from: name of the option, with `used_by`, whose files add choices; "" for none.
    """

    name: str
    kind: type
    default: Any
    help: str
    many: bool = False
    count: int = 1
    unit: str = ""
    limits: tuple[float, float] | None = None
    allowed: tuple[str, ...] | Callable[[], Sequence[str]] = ()
    address: bool = False
    changeable: bool = False
    only_with: tuple[str, str] | None = None
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    bare: str | None = None
    launch: bool = False
    positional: bool = False
    several: bool = False
    parse_text: Callable[[str], Any] | None = None
    heading: str = ""
    one_of: str = ""
    needed: bool = False
    holds: str = ""
    offered: Callable[[], Sequence[str]] | None = None
    used_by: str = ""
    more_from: str = ""

    @property
    def elsewhere(self) -> Option:
        """The option for programs that do not use files with further choices (`more_from`)."""
        return replace(self, allowed=()) if self.more_from else self

    @property
    def choices(self) -> tuple[str, ...]:
        """Texts that are allowed, () for any."""
        return tuple(self.allowed() if callable(self.allowed) else self.allowed)

    @property
    def parameter(self) -> Value:
        """The default as the value of a ROS parameter, in the parameter's type."""
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
    def expected(self) -> str:
        """What the value of the ROS parameter must be, in words, such as "true or false"."""
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
        """The value of a ROS parameter in the type of the option, where YAML reads another.

        YAML reads on and off as true and false, and 50 as a whole number.
        """
        if self.is_switch and isinstance(value, bool):
            return "on" if value else "off"
        if self.kind is float and type(value) is int:
            return float(value)
        return value

    def problem(self, value: object) -> str | None:
        """Reason why the value of a ROS parameter is refused; None if it is accepted."""
        if not self._has_type(value):
            hint = ""
            if self.kind in (int, float) and isinstance(value, str):
                hint = number_hint(value, self.unit)
            return f"{self.name} must be {self.expected}, not {value!r}{hint}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if self.address and not is_address(str(value)):
            hint = address_hint(value)
            return f"{self.name} must be the address of a host, not {value!r}{hint}"
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

    def _has_type(self, value: object) -> bool:
        """Whether a value has the type of the ROS parameter; a whole number may be a float."""
        if self.kind is float:
            return type(value) in (int, float)
        if isinstance(value, list) and not all(isinstance(item, str) for item in value):
            return False
        return type(value) is type(self.parameter)

    def typed(self, value: Any) -> Any:
        """The value of the table's field that the value of a ROS parameter stands for.

        Raises:
            InputError: a path in the home folder of a user who does not exist.
        """
        if self.many:
            return tuple(self._item(item) for item in value if item)
        if value == "" and self.default is None:
            return None
        return self._item(value)

    def _item(self, value: Any) -> Any:
        """One item of the value of a ROS parameter in the type of the table's field."""
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
                    f"{self.name}:={text} is not {self.expected}{hint}"
                ) from error
        if problem := self.problem(value):
            raise ValueError(problem)
        return value

    def _items(self, text: str) -> list[str]:
        """Items of a list as typed, without empty ones."""
        import yaml  # takes long, and commands do not need it

        refusal = ValueError(f"{self.name}:={text} is not {self.expected}")
        items: list[Any] = text.split(",")
        if text.lstrip()[:1] in ("[", "'", '"'):
            try:
                # BaseLoader leaves 1e3 and on as they are.
                items = yaml.load(f"[{text}]", yaml.BaseLoader)
            except yaml.YAMLError:
                raise refusal from None
            if len(items) == 1 and isinstance(items[0], list):  # it had brackets
                items = items[0]
        if not all(isinstance(item, str) for item in items):
            raise refusal
        return [item.strip() for item in items if item.strip()]

    def ignored(self, values: object) -> str | None:
        """Line that states that a value was given but has no effect; None if it has one.

        Args:
            values: object of the table.
        """
        if self.only_with is None or getattr(values, self.name) == self.default:
            return None
        name, needed = self.only_with
        found = getattr(values, name)
        if found == needed:
            return None
        return f"{self.name} is ignored: it needs {name}:={needed}, and {name} is {found}"

    # On the command line.

    @property
    def label(self) -> str:
        """The option in messages: its flags, or what stands for an argument in the help."""
        return "/".join(self.flags) or self.metavar or self.name

    @property
    def placeholder(self) -> str:
        """What stands for the value in the help."""
        return self.metavar or f"{{{','.join(self.choices)}}}"

    @property
    def description(self) -> str:
        """The help with the default at its end, where the help does not state it."""
        has_default = self.default not in (None, "", (), MISSING)
        is_stated = "(default:" in self.help
        if not has_default or is_stated or self.kind is bool:
            return self.help
        return f"{self.help} (default: {self.default})"

    def add_to(self, parser: _Arguments) -> argparse.Action:
        """Add the option to a command; argparse only splits the words, `read` reads them.

        Returns:
            The action of argparse, to which a completion script may be added.
        """
        words: dict[str, Any] = {"help": self.description.replace("%", "%%")}
        if not self.positional:
            words["dest"] = self.name
        if self.kind is bool:
            words["action"] = "store_true"
            if self.default:
                from argparse import BooleanOptionalAction

                words["action"] = BooleanOptionalAction
            return parser.add_argument(*self.flags, default=None, **words)
        words["metavar"] = self.placeholder
        if self.count > 1:
            words |= {"metavar": tuple(self.placeholder.split()), "nargs": self.count}
        if self.positional:
            optional = self.default is not MISSING
            if self.many:
                words["nargs"] = "*" if optional else "+"
            elif optional:
                words["nargs"] = "?"
            return parser.add_argument(self.name, **words)
        if self.several:
            words["nargs"] = "+"
        elif self.bare is not None:
            words |= {"nargs": "?", "const": self.bare}
        if self.many and not self.several:
            words["action"] = "append"
        if self.default is MISSING:
            words["required"] = True
        return parser.add_argument(*self.flags, **words)

    def read(self, words: Any) -> Any:
        """The value of the option.

        Args:
            words: what argparse made of the command line: None where the option is not
                there, a truth value of a switch, a word, a list of words, or a list of
                such lists.

        Raises:
            ValueError: a word that is not allowed; the message names the option.
        """
        if words is None:
            return self.default
        if self.kind is bool:
            return bool(words)
        if self.parse_text is not None and self.several:
            return self._value(" ".join(words))
        if self.many:
            return tuple(self._values(each) for each in words)
        return self._values(words)

    def _values(self, words: Any) -> Any:
        """One value, or a tuple of `count` of them."""
        if self.count > 1:
            return tuple(self._value(word) for word in words)
        return self._value(words)

    def _value(self, text: str) -> Any:
        """The value of one word; ValueError with the name of the option if it is none."""
        try:
            if self.parse_text is not None:
                return self.parse_text(text)
            if self.kind in (int, float):
                least, most = self.limits or _ANY_NUMBER
                return number(self.kind, least, most, self.unit)(text)
            if self.address:
                return host_address(text)
        except ValueError as error:
            raise ValueError(
                f"argument {self.label}: {error} ({self.placeholder})"
            ) from None
        if self.choices and text not in self.choices:
            hint = suggestion(text, self.choices)
            raise ValueError(f"argument {self.label}: there is no {text!r}{hint}")
        return Path(text) if self.kind is Path else text


def option(
    default: Any = MISSING,
    help: str = "",
    *,
    flags: tuple[str, ...] | None = None,
    positional: bool = False,
    parse: Callable[[str], Any] | None = None,
    choices: tuple[str, ...] | Callable[[], Sequence[str]] = (),
    **named: Any,
) -> Any:
    """A field of a table.

    Args:
        default: MISSING where the user must state it.
        help: what it does, without a full stop.
        flags: default the name of the field, as --name.
        positional: whether it is an argument of the command line without a flag.
        parse: makes the value of its text on the command line, and raises ValueError for
            texts that are not one.
        choices: texts that are allowed, or a function that returns them.
        named: further attributes of Option: unit, limits, address, changeable, only_with,
            metavar, bare, launch, several, heading, one_of, needed, holds, offered.
    """
    return field(
        default=default,
        metadata={
            "help": help,
            "flags": () if positional else flags,
            "positional": positional,
            "parse_text": parse,
            "allowed": choices,
            **named,
        },
    )


def part(table: Callable[[], T], heading: str = "") -> T:
    """A field of a table that holds another table.

    Args:
        table: the other table; none of its options must be required.
        heading: title of its options in the help of a command, "" for none.
    """
    found: T = field(default_factory=table, metadata={"heading": heading})
    return found


def options_of(table: type) -> tuple[Option, ...]:
    """All options of a table, in its order, with the options of the tables that it contains."""
    hints = get_type_hints(table)
    found: list[Option] = []
    for each in fields(table):
        kind = hints[each.name]
        named = dict(each.metadata)
        if isinstance(kind, type) and is_dataclass(kind):
            heading = named.get("heading", "")
            found += [
                replace(inner, heading=inner.heading or heading)
                for inner in options_of(kind)
            ]
            continue
        if named["flags"] is None:
            named["flags"] = (f"--{each.name.replace('_', '-')}",)
        if named["parse_text"] is None:
            named |= _shape(kind)
        else:
            named["kind"] = object
        found.append(Option(name=each.name, default=each.default, **named))
    return tuple(found)


def _shape(hint: Any) -> dict[str, Any]:
    """Properties of an option that follow from the type of its field.

    Args:
        hint: type of the field, see the table at the top of this module.

    Returns:
        Attributes of `Option` by name: kind, and many, count and allowed where they are
        not the default.
    """
    found: dict[str, Any] = {}
    kind = _without_none(hint)
    if get_origin(kind) is tuple and get_args(kind)[-1] is ...:
        found["many"] = True
        kind = _without_none(get_args(kind)[0])
    if get_origin(kind) is tuple:
        found["count"] = len(get_args(kind))
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        found["allowed"] = get_args(kind)
        kind = str
    return {**found, "kind": kind}


def _without_none(hint: Any) -> Any:
    """The type of a value that may be None."""
    kinds = [each for each in get_args(hint) if each is not NoneType]
    optional = NoneType in get_args(hint) and len(kinds) == 1
    return kinds[0] if optional else hint


def table_of(table: type[T], values: Mapping[str, Any]) -> T:
    """An object of a table.

    Args:
        table: dataclass of the options.
        values: values of the table's options by name, with the types of the fields; other
            options keep their defaults.
    """
    hints = get_type_hints(table)
    found = {}
    for each in fields(table):  # type: ignore[arg-type]
        kind = hints[each.name]
        if is_dataclass(kind):
            found[each.name] = table_of(kind, values)  # type: ignore[arg-type]
        elif each.name in values:
            found[each.name] = values[each.name]
    return table(**found)


_FEW = 9  # fewer words than these are listed in a message


def suggestion(word: str, known: Sequence[str], before: str = "") -> str:
    """The end of a message about a wrong word: the word that is meant, and all if few.

    Args:
        word: word as the user types it.
        known: words that would be right.
        before: what stands before each word, such as "--"; the words are not listed
            then.

    Returns:
        Such as ": did you mean fast? use one of fast, slow"; "" if nothing is known.
    """
    near = closest(word, known)
    text = "" if near is None else f": did you mean {before}{near}?"
    if before or len(known) >= _FEW:
        return text
    return f"{text or ':'} use one of {', '.join(known)}"
