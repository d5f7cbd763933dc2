# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""The types of companion specifications that the OPC UA server uses.

The specifications are of the OPC Foundation: OPC 34100 Energy Consumption Management
(ECM), OPC 40001-1 Machinery and OPC 40001-4 Machinery Energy Management, OPC 10000-200
Industrial Automation (IA) and OPC 10000-100 Devices (DI). The nodes that are used from
them, with their numbers, are in config/opcua/companion_types.xml, which an `AddressSpace`
adds to a server.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from asyncua import Server, ua

from ur_energy_model.files import config_file

IDS = ua.ObjectIds  # numbers of the nodes of OPC UA itself

# Namespaces: of the specifications, of this package, and of OPC UA itself.
DI = "http://opcfoundation.org/UA/DI/"
IA = "http://opcfoundation.org/UA/IA/"
MACHINERY = "http://opcfoundation.org/UA/Machinery/"
ECM = "http://opcfoundation.org/UA/ECM/"
MACHINERY_ENERGY = "http://opcfoundation.org/UA/Machinery/Energy/"
OWN = "urn:ur_energy_model:energy"
"""Namespace of what no specification defines."""
BASE = ""
SPACES = (DI, IA, MACHINERY, ECM, MACHINERY_ENERGY, OWN)
"""Namespaces that are added to a server, each after the namespaces that it uses."""

# Nodes of the specifications: namespace and number. The numbers are in the node sets that
# the OPC Foundation publishes.
MACHINES = (MACHINERY, 1001)
MACHINE_IDENTIFICATION_TYPE = (MACHINERY, 1012)
CONTAINS = (MACHINERY_ENERGY, 4003)
"""Reference from the main metering point to one whose energy it includes."""
HAS_STATISTIC_COMPONENT = (IA, 4002)
MEASUREMENT_TYPE = (ECM, 1006)
VALUE_TYPE = (ECM, 2002)
PERCENT_OF_READING = (ECM, 5024)
CLASS_NAMES = ((ECM, 6273), (ECM, 6057))
RESOURCE_NAMES = ((ECM, 6111),)
"""Properties EnumValues of accuracy classes and of resources. They have no values in the file of
types; `AddressSpace.add_types` writes them."""
ELECTRICITY = 1  # resource of every measurement
RESOURCES = ("Not specified", "Electricity")  # the resources that occur here
NodeNumber: TypeAlias = "str | tuple[str, int] | int"
"""Identifier in OWN, a namespace and number, or a number in OPC UA itself."""


def _unit(code: str, symbol: str, name: str) -> ua.Variant:
    """A unit as EUInformation (OPC 10000-8, 5.6.3).

    Args:
        code: code of UN/CEFACT Recommendation 20.
        symbol: symbol of the unit, for displays.
        name: name of the unit in words.
    """
    uri = "http://www.opcfoundation.org/UA/units/un/cefact"
    number = int.from_bytes(code.encode(), "big")
    texts = ua.LocalizedText(symbol), ua.LocalizedText(name)
    return ua.Variant(ua.EUInformation(uri, number, *texts))


WATT = _unit("WTT", "W", "watt")
WATT_HOUR = _unit("WHR", "W·h", "watt hour")
JOULE = _unit("JOU", "J", "joule")
SECOND = _unit("SEC", "s", "second [unit of time]")

ACCURACY_CLASSES: tuple[float, ...] = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 20.0,
)  # fmt: skip
"""Classes 1 to 14 of the domain "percent of the actual reading" [%]; 15 is above."""
UNKNOWN_CLASS = 0
_PERCENT = [f"{limit:g} %" for limit in ACCURACY_CLASSES]
CLASS_TEXTS = ("unknown", *_PERCENT, f"more than {_PERCENT[-1]}")
"""The unknown class, classes 1 to 14 and the class above, in words."""
_VARIANT_TYPES = {
    float: ua.VariantType.Double,
    int: ua.VariantType.Int64,
    str: ua.VariantType.String,
}


def variant(value: float | str) -> ua.Variant:
    """A number as Double or Int64, or a text."""
    return ua.Variant(value, _VARIANT_TYPES[type(value)])


def _enum_values(names: Iterable[str], texts: Iterable[str]) -> ua.Variant:
    """EnumValues, numbered from 0.

    Args:
        names: names of the values, for programs.
        texts: descriptions, one for each name.
    """
    values: list[ua.EnumValueType] = []
    for number, (name, text) in enumerate(zip(names, texts, strict=True)):
        entry = ua.EnumValueType(number, ua.LocalizedText(name), ua.LocalizedText(text))
        values.append(entry)
    return ua.Variant(values, ua.VariantType.ExtensionObject)


RESOURCE_VALUES = _enum_values(RESOURCES, ("", ""))
CLASSES = _enum_values((f"ACCURACY_CLASS_{k}" for k in range(16)), CLASS_TEXTS)
"""EnumValues of the accuracy domain "percent of the actual reading"."""


class AddressSpace:
    """The address space of a server, to which the types of the specifications are added.

    Attributes:
        server: server that holds the nodes.
        spaces: index of each namespace in the server.
    """

    def __init__(self, server: Server) -> None:
        """An address space without these types; the server is initialised, not started."""
        self.server = server
        self.spaces: dict[str, int] = {BASE: 0}

    async def add_types(self) -> None:
        """Add the namespaces and the types, before the server is started."""
        for uri in SPACES:
            self.spaces[uri] = await self.server.register_namespace(uri)
        await self.server.import_xml(config_file("opcua", "companion_types.xml"))
        for nodes, values in ((CLASS_NAMES, CLASSES), (RESOURCE_NAMES, RESOURCE_VALUES)):
            for node in nodes:
                await self.server.write_attribute_value(
                    self.id(node), ua.DataValue(values)
                )

    def id(self, node: NodeNumber) -> ua.NodeId:
        """Identifier of a node.

        Args:
            node: a text in the namespace OWN, a namespace and a number, or a number in
                the namespace of OPC UA.
        """
        if isinstance(node, str):
            return ua.NodeId(node, self.spaces[OWN])
        if isinstance(node, int):
            return ua.NodeId(node, self.spaces[BASE])
        uri, number = node
        return ua.NodeId(number, self.spaces[uri])
