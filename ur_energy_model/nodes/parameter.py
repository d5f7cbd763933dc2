"""Parameter: one parameter of a node, with its range and how it is typed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from ur_energy_model.telemetry.rtde.address import is_address

Value: TypeAlias = bool | int | float | str | list[str]


@dataclass(frozen=True)
class Parameter:
    """One parameter of a node.

    Attributes:
        name: ROS parameter name.
        default: its type is the parameter's type.
        description: what it does, one sentence without a full stop.
        unit: SI unit of a number.
        minimum, maximum: inclusive range of a number.
        choices: allowed values of a text.
        read_only: True if it can only be changed while the node is unconfigured.
        only_with: name of another parameter and the value of it with which this one has an
            effect; None if it always has one.
        address: True for the address of a host.
    """

    name: str
    default: Value
    description: str
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    read_only: bool = True
    only_with: tuple[str, str] | None = None
    address: bool = False

    @property
    def dynamic(self) -> bool:
        """Whether ROS must accept other types, which `normalized` and `problem` deal with."""
        return self.is_switch or isinstance(self.default, float)

    @property
    def is_switch(self) -> bool:
        """Whether it is a text that YAML, and so the command line of ROS, may read as a bool."""
        return {"on", "off"} <= set(self.choices)

    @property
    def wanted(self) -> str:
        """What a value must be, in words."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, list):
            return "a list of text, such as \"['first', 'second']\""
        if isinstance(self.default, str):
            return "text, in quotes if it looks like a number"
        kind = "a whole number" if isinstance(self.default, int) else "a number"
        return f"{kind}, {self.minimum:.12g} to {self.maximum:.12g}"

    def normalized(self, value: Value) -> Value:
        """The value with on and off as text, which YAML reads as true and false, and 50 as 50.0."""
        if self.is_switch and isinstance(value, bool):
            return "on" if value else "off"
        if isinstance(self.default, float) and type(value) is int:
            return float(value)
        return value

    def problem(self, value: object) -> str | None:
        """Reason why a value is refused; None if it is accepted."""
        kinds = (int, float) if isinstance(self.default, float) else (type(self.default),)
        of_text = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if type(value) not in kinds or not of_text:
            return f"{self.name} must be {self.wanted}, not {value!r}"
        if self.choices and value not in self.choices:
            return f"{self.name} must be one of {', '.join(self.choices)}, not {value!r}"
        if self.address and not is_address(str(value)):
            return f"{self.name} must be the address of a host, not {value!r}"
        if isinstance(value, int | float):
            low = -float("inf") if self.minimum is None else self.minimum
            high = float("inf") if self.maximum is None else self.maximum
            if not low <= value <= high:
                return f"{self.name} must be between {low:g} and {high:g}, not {value:g}"
        return None

    def ignored(self, values: Mapping[str, object]) -> str | None:
        """Line that states that the value given has no effect; None if it has one.

        Args:
            values: of all parameters of the node.
        """
        if self.only_with is None or values[self.name] == self.default:
            return None
        name, wanted = self.only_with
        if values[name] == wanted:
            return None
        return f"{self.name} is ignored: it needs {name}:={wanted}, and {name} is {values[name]}"

    def parse(self, text: str) -> Value:
        """A value as typed on a command line.

        The items of a list are separated by commas, or it is a list of YAML: [a, "b", 'c'].

        Raises:
            ValueError: the text is not of the type, or the value is not allowed.
        """
        value: Value
        if isinstance(self.default, bool):
            if text not in ("true", "false"):
                raise ValueError(f"{self.name}:={text} is not true or false")
            value = text == "true"
        elif isinstance(self.default, list):
            value = self._items(text) or [""]
        else:
            try:
                value = type(self.default)(text)
            except ValueError as error:
                raise ValueError(f"{self.name}:={text} is not {self.wanted}") from error
        problem = self.problem(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def _items(self, text: str) -> list[str]:
        """Items of a list as typed, without empty ones."""
        items: object = text.split(",")
        if text.lstrip()[:1] in ("[", "'", '"'):
            try:
                # BaseLoader leaves 1e3 and on as they are.
                items = yaml.load(f"[{text}]", yaml.BaseLoader)
            except yaml.YAMLError:
                items = None
            if isinstance(items, list) and len(items) == 1 and isinstance(items[0], list):
                items = items[0]
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError(f"{self.name}:={text} is not {self.wanted}")
        return [item.strip() for item in items if item.strip()]
