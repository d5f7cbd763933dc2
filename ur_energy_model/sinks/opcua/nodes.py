# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes of the OPC UA server: arms as machines with metering points, methods and values.

Their types are from companion specifications of the OPC Foundation: OPC 34100 Energy
Consumption Management (ECM), OPC 40001-1 Machinery and OPC 40001-4 Machinery Energy
Management, OPC 10000-200 Industrial Automation (IA) and OPC 10000-100 Devices (DI). The
nodes that are used of them, with their numbers, are in config/opcua/companion_types.xml.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any, NamedTuple, TypeAlias

from asyncua import Server, ua

from ur_energy_model.energy.cycle_energies import (
    MEASURED_SHARE,
    TOTAL_SOURCE,
    UNACCOUNTED,
)
from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.topics import PARTS
from ur_energy_model.files import config_file
from ur_energy_model.sinks.sink import ArmActions, ArmReading
from ur_energy_model.typing import Array

DI = "http://opcfoundation.org/UA/DI/"
IA = "http://opcfoundation.org/UA/IA/"
MACHINERY = "http://opcfoundation.org/UA/Machinery/"
ECM = "http://opcfoundation.org/UA/ECM/"
MACHINERY_ENERGY = "http://opcfoundation.org/UA/Machinery/Energy/"
OWN = "urn:ur_energy_model:energy"  # namespace of what no specification defines
BASE = ""  # namespace of OPC UA itself
SPACES = (DI, IA, MACHINERY, ECM, MACHINERY_ENERGY, OWN)

MACHINES = (MACHINERY, 1001)
MACHINE_IDENTIFICATION_TYPE = (MACHINERY, 1012)
CONTAINS = MACHINERY_ENERGY, 4003
"""Reference from the main metering point to one whose energy it includes."""
HAS_STATISTIC_COMPONENT = IA, 4002
MEASUREMENT_TYPE = (ECM, 1006)
VALUE_TYPE = (ECM, 2002)
PERCENT_OF_READING = (ECM, 5024)
CLASS_NAMES = ((ECM, 6273), (ECM, 6057))
RESOURCE_NAMES = ((ECM, 6111),)
"""EnumValues of accuracy classes and of resources, whose values the file leaves out."""
ELECTRICITY = 1  # resource of every measurement
RESOURCES = ("Not specified", "Electricity")  # those that occur here
NodeNumber: TypeAlias = "str | tuple[str, int] | int"
"""Identifier in OWN, a namespace and number, or a number in OPC UA itself."""


def _unit(code: str, symbol: str, name: str) -> ua.Variant:
    """A unit as EUInformation (OPC 10000-8, 5.6.3).

    Args:
        code: of UN/CEFACT Recommendation 20.
        symbol: for displays.
        name: in words.
    """
    uri = "http://www.opcfoundation.org/UA/units/un/cefact"
    number = int.from_bytes(code.encode(), "big")
    texts = ua.LocalizedText(symbol), ua.LocalizedText(name)
    return ua.Variant(ua.EUInformation(uri, number, *texts))


WATT = _unit("WTT", "W", "watt")
WATT_HOUR = _unit("WHR", "W·h", "watt hour")
JOULE = _unit("JOU", "J", "joule")
SECOND = _unit("SEC", "s", "second [unit of time]")

# Metering points of an arm besides its joints, and the measurements of each point.

MAIN = "Main"
"""The whole arm; this name is the well-known one of OPC 40001-4."""
MODEL = "Model"
BUS = "Bus"
PART_POINTS = {name.title(): channel for name, channel in PARTS.items()}
"""Points whose energies, with the energies of the joints, sum to the energy of MAIN; and
their channels."""
AGAIN = (MODEL, BUS)
"""Points with the energy of MAIN once more, as the model or as the bus has it."""
JOULES_PER_WATT_HOUR = 3600.0
ACCURACY_CLASSES: tuple[float, ...] = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 20.0,
)  # fmt: skip
"""Classes 1 to 14 of the domain "percent of the actual reading" [%]; 15 is above."""
UNKNOWN_CLASS = 0


class Measurand(NamedTuple):
    """A measurement that OPC 34100 numbers.

    Attributes:
        name: BrowseName.
        number: MeasurementID.
        unit: of the values, EUInformation.
        kind: type of the values.
        by: reference from its metering point; a statistic is set to zero by a reset.
    """

    name: str
    number: int
    unit: ua.Variant = WATT_HOUR
    kind: ua.VariantType = ua.VariantType.Double
    by: NodeNumber = HAS_STATISTIC_COMPONENT

    def __hash__(self) -> int:
        return self.number


POWER = Measurand(
    "DcActivePower", 1032, WATT, ua.VariantType.Float, ua.ObjectIds.HasComponent
)
# Energies at the arm's 48 V supply since the last reset.
IMPORT = Measurand("DcEnergyTotalImportHp", 1023)
"""Consumed."""
EXPORT = Measurand("DcEnergyTotalExportHp", 1026)
"""Fed back."""
SUM = Measurand("DcEnergyTotalSumHp", 1029)
"""Consumed less fed back."""


class Measurement(NamedTuple):
    """A value of one metering point.

    Attributes:
        value: power [W] or energy [Wh].
        uncertainty: half the width of the 95 % interval of the value, in the same unit;
            NaN where it is not known.
    """

    value: float
    uncertainty: float

    @property
    def accuracy_class(self) -> int:
        """Number, from 1, of the smallest class of ACCURACY_CLASSES with the interval.

        It is one more than the number of classes where the interval is wider than all of
        them, and UNKNOWN_CLASS where the interval is not known.
        """
        if not math.isfinite(self.uncertainty):
            return UNKNOWN_CLASS
        percent = math.inf
        if self.value:
            percent = 100.0 * self.uncertainty / abs(self.value)
        return 1 + sum(percent > limit for limit in ACCURACY_CLASSES)


def metering_points(reading: ArmReading) -> dict[str, dict[Measurand, Measurement]]:
    """All measurements of a reading, by metering point.

    MAIN is measured where the bus power is, else modelled; joints and PART_POINTS sum to
    MAIN. BUS is there only where it is measured. Import and export have the uncertainty
    of their difference.

    Args:
        reading: of the arm.
    """
    snapshot = reading.snapshot
    energy = snapshot.since_reset
    power_std = _deviations(reading, snapshot.power, snapshot.seconds)
    energy_std = _deviations(reading, energy.net, None)
    hour = JOULES_PER_WATT_HOUR
    found: dict[str, dict[Measurand, Measurement]] = {}
    for point, column in _point_columns(reading).items():
        power_half = CONFIDENCE * power_std.get(point, math.nan)
        energy_half = CONFIDENCE * energy_std.get(point, math.nan)
        measurements = {POWER: Measurement(float(snapshot.power[column]), power_half)}
        for quantity, joules in (
            (IMPORT, energy.consumed),
            (EXPORT, energy.regenerated),
            (SUM, energy.net),
        ):
            watt_hours = float(joules[column]) / hour
            measurements[quantity] = Measurement(watt_hours, energy_half / hour)
        found[point] = measurements
    return found


def _point_columns(reading: ArmReading) -> dict[str, int]:
    """Column of each metering point in arrays of channels, in the order of the points."""
    columns = reading.snapshot.channels
    channels = {MAIN: "total", **PART_POINTS, MODEL: "model"}
    if reading.snapshot.bus_measured:
        channels[BUS] = "bus"
    found = {point: columns.arm[channel] for point, channel in channels.items()}
    first = columns.per_joint["electrical_power"].start
    for number, joint in enumerate(reading.joints):
        found[joint] = first + number
    return found


def _deviations(
    reading: ArmReading, values: Array, seconds: float | None
) -> dict[str, float]:
    """Standard uncertainties by metering point, as far as they are known.

    Args:
        reading: of the arm.
        values: powers [W] or energies [J] of all channels.
        seconds: time over which the powers are means [s]; None for energies.
    """
    columns = reading.snapshot.channels
    joints = columns.deviations_of_joints(values)
    return {
        **dict(zip(reading.joints, joints.tolist(), strict=True)),
        MAIN: float(columns.deviations_of_total(values, seconds)),
        MODEL: float(columns.deviations_of_model(values, seconds)),
        "Unexplained": float(columns.deviations_of_unexplained(values, seconds)),
        "Standby": float(columns.deviation_of_standby(values)),
    }


def plain_values(reading: ArmReading) -> dict[str, tuple[float | str, ua.Variant | None]]:
    """Values and units under the names of the ROS topics, for clients that use no model.

    Args:
        reading: of the arm; values of a cycle are there only if one has ended since the
            previous reading.

    Returns:
        Value and unit by name; the unit of a text or count is None.
    """
    out: dict[str, tuple[float | str, ua.Variant | None]] = {}
    for name, value in reading.numbers().items():
        out[name] = (value, WATT if name.endswith("/power") else JOULE)
    lost = reading.link.losses.samples
    source = reading.snapshot.total_source
    out |= {
        "state": (reading.state, None),
        "samples_lost": (lost, None),
        TOTAL_SOURCE: (source.name, None),
        MEASURED_SHARE: (source.share, None),
    }
    units = {
        "energy": JOULE,
        "model_energy": JOULE,
        "unexplained_energy": JOULE,
        "duration": SECOND,
        UNACCOUNTED: SECOND,
        "peak_power": WATT,
    }
    if reading.cycles:
        for name, figure in reading.figures_of(reading.cycles[-1]).items():
            known = "" if figure is None else figure
            out[f"energy/cycle/{name}"] = (known, units.get(name))
    return out


IDS = ua.ObjectIds
_KINDS = {
    float: ua.VariantType.Double,
    int: ua.VariantType.Int64,
    str: ua.VariantType.String,
}
_PERCENT = [f"{limit:g} %" for limit in ACCURACY_CLASSES]
CLASS_TEXTS = ("unknown", *_PERCENT, f"more than {_PERCENT[-1]}")


def variant(value: float | str) -> ua.Variant:
    """A number as Double or Int64, or a text."""
    return ua.Variant(value, _KINDS[type(value)])


def _enum_values(names: Iterable[str], texts: Iterable[str]) -> ua.Variant:
    """EnumValues, numbered from 0.

    Args:
        names: for programs.
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
    """The types of the companion specifications in a server.

    Attributes:
        server: in which they are.
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


FOLDERS = (
    ("Monitoring", MACHINERY),
    ("Consumption", MACHINERY),
    ("Electricity", MACHINERY_ENERGY),
)
"""Folders from the machine down to its metering points, with their namespaces."""
PLAIN = "Energy"
"""Folder of the values under the names of the ROS topics."""
START = "StartTime"
"""Key of the time of the last reset."""
LONGEST_REASON = 200
"""Most characters of the reason of a reset that are kept."""
_INTERVAL = {
    "accounted_s": "time of the interval that was measured [s]",
    "unaccounted_s": "time of the interval without samples [s]",
    "total_J": "energy of the whole arm [J], measured where the bus is",
    "bus_J": "measured energy of the bus [J]",
}


def _point_values(
    points: Mapping[str, Mapping[Measurand, Measurement]],
) -> dict[str, object]:
    """Values of the variables of metering points, by the keys of `MachineNodes`."""
    values: dict[str, object] = {}
    for point, measurements in points.items():
        for quantity, measurement in measurements.items():
            key = f"{point}/{quantity.name}"
            number = measurement.accuracy_class
            values[key] = measurement.value
            values[f"{key}/Uncertainty"] = measurement.uncertainty
            values[f"{key}/AccuracyClass"] = number
            values[f"{key}/AccuracyClass/ValueAsText"] = CLASS_TEXTS[number]
            values[f"{key}/Resource"] = ELECTRICITY
            values[f"{key}/Resource/ValueAsText"] = RESOURCES[ELECTRICITY]
    return values


class MachineNodes:
    """The nodes of one arm, which are added and written with its readings.

    Each node has a key: "" is the machine, whose identifier in OWN is the name of the
    arm.
    The identifier of any other node is `arm/key`.
    """

    def __init__(self, space: AddressSpace, arm: str) -> None:
        """The nodes of the arm of this name, none of which is added yet."""
        self._space = space
        self._arm = arm
        self._kinds: dict[str, ua.VariantType] = {}  # type of each variable, by key
        self._written: dict[str, object] = {}  # last value of each variable, by key
        self._points: set[str] = set()  # metering points that are added
        self._status = ua.StatusCodes.Good

    def _id(self, key: NodeNumber) -> ua.NodeId:
        """Identifier of a node of this arm by its key, or of a specification's node."""
        if isinstance(key, str):
            key = f"{self._arm}/{key}" if key else self._arm
        return self._space.id(key)

    async def add(self, reading: ArmReading, actions: ArmActions | None) -> None:
        """Add the machine, its nameplate, folders, metering points and methods.

        Args:
            reading: the first one of the arm.
            actions: what the methods do; None for a machine without methods.
        """
        await self._add(
            MACHINES, "", OWN, IDS.BaseObjectType, IDS.Organizes, name=self._arm
        )
        nameplate = "Identification"
        serial = reading.snapshot.serial or "unknown"
        await self._add("", nameplate, DI, MACHINE_IDENTIFICATION_TYPE, IDS.HasAddIn)
        model = "" if reading.robot is None else reading.robot.name
        for name, value in {  # OPC 40001-1
            "Manufacturer": ua.Variant(ua.LocalizedText("Universal Robots")),
            "Model": ua.Variant(ua.LocalizedText(model)),
            "SerialNumber": variant(serial),
            "ProductInstanceUri": variant(f"urn:universal-robots:{serial}"),
        }.items():
            await self._add(nameplate, f"{nameplate}/{name}", DI, value=value)
        parent = ""
        by = IDS.HasComponent
        for name, uri in FOLDERS:
            parent = await self._add(parent, name, uri, IDS.FolderType, by)
            by = IDS.Organizes
        await self._add_points(metering_points(reading))
        await self._add("", PLAIN, OWN, IDS.FolderType)
        if actions is not None:
            await self._add_methods(actions)

    async def write(self, reading: ArmReading) -> None:
        """Write the values that have changed; all of them if the arm had been lost.

        Args:
            reading: of the arm; metering points and values that are new are added.
        """
        points = metering_points(reading)
        await self._add_points(points)
        values = _point_values(points)
        values[START] = datetime.fromisoformat(reading.snapshot.reset_time)
        for name, (value, unit) in plain_values(reading).items():
            if name not in self._kinds:
                await self._add_plain(name, value, unit)
            values[name] = value
        was_lost = self._status != ua.StatusCodes.Good
        self._status = ua.StatusCodes.Good
        changed: dict[str, object] = {}
        for key, new in values.items():
            is_new = key not in self._written or self._written[key] != new
            if was_lost or is_new:
                changed[key] = new
        self._written |= changed
        time = datetime.fromtimestamp(reading.stamp * 1e-9, timezone.utc)
        await self._write(changed, time)

    async def lose(self) -> None:
        """Mark all values as the last ones before the arm was lost."""
        if self._status == ua.StatusCodes.Good:
            self._status = ua.StatusCodes.UncertainLastUsableValue
            await self._write(self._written, datetime.now(timezone.utc))

    async def _write(self, values: Mapping[str, Any], time: datetime) -> None:
        """Write values with the present status.

        Args:
            values: by key.
            time: of the sample.
        """
        status = ua.StatusCode(self._status)
        for key, value in values.items():
            kind = self._kinds[key]
            if kind == ua.VariantType.LocalizedText:
                value = ua.LocalizedText(value)
            data = ua.DataValue(ua.Variant(value, kind), status, SourceTimestamp=time)
            await self._space.server.write_attribute_value(self._id(key), data)

    async def _add(
        self,
        parent: NodeNumber,
        key: str,
        uri: str,
        kind: NodeNumber = IDS.PropertyType,
        by: NodeNumber | None = None,
        *,
        name: str = "",
        value: ua.Variant | None = None,
        data_type: int | None = None,
        writable: bool = False,
    ) -> str:
        """Add an object, or a variable where there is a value.

        Args:
            parent: key of the node above.
            key: of the new node.
            uri: namespace of the browse name.
            kind: type of the node.
            by: reference from the parent; by default HasProperty for a property, else
                HasComponent.
            name: browse name; by default the end of the key.
            value: first value of the variable; None for an object.
            data_type: of the value; by default the type of its variant.
            writable: whether users may change the value.

        Returns:
            The key.
        """
        name = name or key.rpartition("/")[2]
        text = ua.LocalizedText(name)
        node_class = ua.NodeClass.Object
        attributes = ua.ObjectAttributes(DisplayName=text)
        if value is not None:
            self._kinds[key] = value.VariantType
            is_array = isinstance(value.Value, list)
            access = ua.AccessLevel.CurrentRead.mask
            if writable:
                access |= ua.AccessLevel.CurrentWrite.mask
            if data_type is None:
                data_type = int(value.VariantType)
            node_class = ua.NodeClass.Variable
            attributes = ua.VariableAttributes(
                DisplayName=text,
                Value=value,
                DataType=ua.NodeId(data_type),
                ValueRank=ua.ValueRank.OneDimension if is_array else ua.ValueRank.Scalar,
                ArrayDimensions=[0] if is_array else None,
                AccessLevel=access,
                UserAccessLevel=access,
            )
        if by is None:
            by = IDS.HasProperty if kind == IDS.PropertyType else IDS.HasComponent
        item = ua.AddNodesItem(
            ParentNodeId=self._id(parent),
            ReferenceTypeId=self._id(by),
            RequestedNewNodeId=self._id(key),
            BrowseName=ua.QualifiedName(name, self._space.spaces[uri]),
            NodeClass=node_class,
            NodeAttributes=attributes,
            TypeDefinition=self._id(kind),
        )
        (result,) = await self._space.server.iserver.isession.add_nodes([item])
        result.StatusCode.check()
        return key

    async def _add_plain(
        self, name: str, value: float | str, unit: ua.Variant | None
    ) -> None:
        """Add a variable under the name of a ROS topic, without its value.

        Args:
            name: its key and browse name.
            value: decides its type.
            unit: EUInformation; None for a text or count.
        """
        kind = IDS.BaseDataVariableType if unit is None else IDS.AnalogUnitType
        empty = variant(type(value)())
        await self._add(PLAIN, name, OWN, kind, name=name, value=empty)
        if unit is not None:
            await self._add_unit(name, unit)

    async def _add_unit(self, above: str, unit: ua.Variant) -> None:
        """Add the unit of the variable with a key."""
        key = f"{above}/EngineeringUnits"
        kind = IDS.EUInformation
        await self._add(above, key, BASE, value=unit, data_type=kind)

    async def _add_points(
        self, points: Mapping[str, Mapping[Measurand, Measurement]]
    ) -> None:
        """Add the metering points that are new, as objects of OPC 34100, MAIN first."""
        folder, _ = FOLDERS[-1]
        for point in points:
            if point in self._points:
                continue
            self._points.add(point)
            uri = MACHINERY_ENERGY if point == MAIN else OWN
            await self._add(folder, point, uri, MEASUREMENT_TYPE, IDS.Organizes)
            tag = f"{point}/ApplicationTag"
            await self._add(point, tag, ECM, value=variant(""), writable=True)
            if point == MAIN:
                never = ua.Variant(None, ua.VariantType.DateTime)
                await self._add(point, START, IA, value=never)
            elif point not in AGAIN:
                await self._add_contains(point)
            for quantity in points[point]:
                await self._add_measurement(point, quantity)

    async def _add_contains(self, point: str) -> None:
        """Add references, in both directions, that MAIN includes the energy of a point."""
        items: list[ua.AddReferencesItem] = []
        for start, forward, end in ((MAIN, True, point), (point, False, MAIN)):
            item = ua.AddReferencesItem(
                SourceNodeId=self._id(start),
                ReferenceTypeId=self._id(CONTAINS),
                IsForward=forward,
                TargetNodeId=self._id(end),
                TargetNodeClass=ua.NodeClass.Unspecified,
            )
            items.append(item)
        session = self._space.server.iserver.isession
        for result in await session.add_references(items):
            result.check()

    async def _add_measurement(self, point: str, quantity: Measurand) -> None:
        """Add a measurement of OPC 34100 with its unit, uncertainty and accuracy class.

        Args:
            point: key of its metering point.
            quantity: what is measured.
        """
        add = self._add
        zero = ua.Variant(0.0, quantity.kind)
        key = f"{point}/{quantity.name}"
        await add(point, key, ECM, VALUE_TYPE, quantity.by, value=zero)
        domain = ua.Variant(self._space.id(PERCENT_OF_READING), ua.VariantType.NodeId)
        number = ua.Variant(quantity.number, ua.VariantType.UInt16)
        await add(key, f"{key}/AccuracyDomain", ECM, value=domain)
        await add(key, f"{key}/MeasurementID", ECM, value=number)
        await self._add_unit(key, quantity.unit)
        await add(key, f"{key}/Uncertainty", OWN, value=variant(0.0))
        for name, names in (("AccuracyClass", CLASSES), ("Resource", RESOURCE_VALUES)):
            child = f"{key}/{name}"
            none = ua.Variant(0, ua.VariantType.UInt32)
            await add(key, child, ECM, IDS.MultiStateValueDiscreteType, value=none)
            kind = IDS.EnumValueType
            await add(child, f"{child}/EnumValues", BASE, value=names, data_type=kind)
            nothing = ua.Variant(ua.LocalizedText(""))
            await add(child, f"{child}/ValueAsText", BASE, value=nothing)

    async def _add_methods(self, actions: ArmActions) -> None:
        """Add the methods to the machine, and ResetStatistics to its main metering point.

        ResetEnergy(Reason) and ResetStatistics set the counters since reset to zero; the
        lifetime ones continue. ReadInterval has the energies since the last call of any
        client, sink or service.
        """

        def reset(_parent: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
            """Set the counters since reset to zero; the only argument is the reason."""
            reason = str(arguments[0].Value or "") if arguments else ""
            actions.reset(reason[:LONGEST_REASON] or "OPC UA client")
            return []

        def read_interval(_parent: ua.NodeId, *_: ua.Variant) -> list[ua.Variant]:
            """The values of _INTERVAL, NaN where they are unknown, and all as JSON."""
            found: dict[str, Any] = dict(actions.read_interval())
            results: list[ua.Variant] = []
            for key in _INTERVAL:
                number = found.get(key)
                results.append(variant(math.nan if number is None else float(number)))
            return [*results, variant(json.dumps(found))]

        def argument(name: str, kind: ua.VariantType, words: str) -> ua.Argument:
            """The description of an argument or a result of a method."""
            how = {"DataType": ua.NodeId(int(kind)), "ValueRank": ua.ValueRank.Scalar}
            return ua.Argument(Name=name, Description=ua.LocalizedText(words), **how)

        text = ua.VariantType.String
        double = ua.VariantType.Double
        reason = argument("Reason", text, "kept with the counters")
        outputs = [argument(key, double, words) for key, words in _INTERVAL.items()]
        outputs.append(argument("json", text, "all of it, with the joints"))
        for parent, key, uri, call, inputs, results in (
            ("", "ResetEnergy", OWN, reset, [reason], []),
            ("", "ReadInterval", OWN, read_interval, [], outputs),
            (MAIN, f"{MAIN}/ResetStatistics", IA, reset, [], []),
        ):
            name = ua.QualifiedName(key.rpartition("/")[2], self._space.spaces[uri])
            node = self._space.server.get_node(self._id(parent))
            await node.add_method(self._id(key), name, call, inputs, results)
