"""control_msgs/DynamicJointState, which is published only if that package is installed."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from builtin_interfaces.msg import Time
from std_msgs.msg import Header


class DynamicJointStates:
    """Makes DynamicJointState messages.

    Attributes:
        message_type: the message class, None where control_msgs is not installed.
    """

    def __init__(self) -> None:
        self.message_type: Any = None
        try:
            messages = importlib.import_module("control_msgs.msg")
        except ImportError:
            return
        self.message_type = messages.DynamicJointState
        self._interface_type = messages.InterfaceValue

    def message(self, stamp: Time, values: Mapping[str, Mapping[str, float]]) -> Any:
        """A message of values by joint name and interface name.

        Raises:
            RuntimeError: control_msgs is not installed.
        """
        if self.message_type is None:
            raise RuntimeError("control_msgs is not installed")
        return self.message_type(
            header=Header(stamp=stamp),
            joint_names=list(values),
            interface_values=[
                self._interface_type(
                    interface_names=list(each), values=[float(value) for value in each.values()]
                )
                for each in values.values()
            ],
        )
