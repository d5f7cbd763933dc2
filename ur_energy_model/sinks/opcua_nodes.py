"""Nodes of the OPC UA server: arms as machines with metering points, methods and values.

Their types are those of companion specifications of the OPC Foundation: OPC 34100 Energy
Consumption Management (ECM), OPC 40001-1 Machinery and OPC 40001-4 Machinery Energy Management,
OPC 10000-200 Industrial Automation (IA) and OPC 10000-100 Devices (DI). The nodes that are used of
them, with their numbers, are in config/opcua/companion_types.xml.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, TypeAlias

from asyncua import Server, ua

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import Channels
from ur_energy_model.files import config_file
from ur_energy_model.sinks.sink import ArmActions, ArmReading
from ur_energy_model.typing import Array

DI = "http://opcfoundation.org/UA/DI/"
IA = "http://opcfoundation.org/UA/IA/"
MACHINERY = "http://opcfoundation.org/UA/Machinery/"
ECM = "http://opcfoundation.org/UA/ECM/"
MACHINERY_ENERGY = "http://opcfoundation.org/UA/Machinery/Energy/"
OWN = "urn:ur_energy_model:energy"
"""Namespace of what no specification defines."""
BASE = ""
"""That of OPC UA itself."""
SPACES = (DI, IA, MACHINERY, ECM, MACHINERY_ENERGY, OWN)

MACHINES, MACHINE_IDENTIFICATION_TYPE = (MACHINERY, 1001), (MACHINERY, 1012)
CONTAINS = MACHINERY_ENERGY, 4003
"""Reference from the main metering point to one whose energy it includes."""
HAS_STATISTIC_COMPONENT = IA, 4002
MEASUREMENT_TYPE, VALUE_TYPE, PERCENT_OF_READING = (ECM, 1006), (ECM, 2002), (ECM, 5024)
CLASS_NAMES, RESOURCE_NAMES = ((ECM, 6273), (ECM, 6057)), ((ECM, 6111),)
"""EnumValues of accuracy classes and of resources, whose values the file leaves out."""
ELECTRICITY = 1
"""Resource of every measurement."""
RESOURCES = ("Not specified", "Electricity")
"""Those that occur here."""
UNITS_URI = "http://www.opcfoundation.org/UA/units/un/cefact"


@dataclass(frozen=True)
class Unit:
    """A unit of measurement.

    Attributes:
        code: in UN/CEFACT Recommendation 20.
        symbol, name: as displayed.
    """

    code: str
    symbol: str
    name: str

    @property
    def number(self) -> int:
        """UnitId: the characters of the code as one number (OPC 10000-8, 5.6.3)."""
        return int.from_bytes(self.code.encode(), "big")


WATT = Unit("WTT", "W", "watt")
WATT_HOUR = Unit("WHR", "W·h", "watt hour")
JOULE = Unit("JOU", "J", "joule")
SECOND = Unit("SEC", "s", "second [unit of time]")

# Metering points of an arm, with the measurement identifiers of OPC 34100.

MAIN, BUS, STANDBY, DRIVERS, REGENERATION = "Main", "Bus", "Standby", "Drivers", "Regeneration"
"""Metering points besides the joints; Main is the well-known name of OPC 40001-4."""
JOULES_PER_WATT_HOUR = 3600.0
ACCURACY_CLASSES: tuple[float, ...] = (
    0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 5.0, 10.0, 20.0,
)  # fmt: skip
"""Classes 1 to 14 of the domain "percent of the actual reading" [%]; 15 is more than the last."""
UNKNOWN_CLASS = 0


@dataclass(frozen=True)
class Quantity:
    """A measurement that OPC 34100 numbers.

    Attributes:
        name: BrowseName.
        number: MeasurementID.
        unit: of the values.
        is_double: Double if true, Float otherwise.
        is_statistic: whether a reset sets it to zero.
    """

    name: str
    number: int
    unit: Unit
    is_double: bool = True
    is_statistic: bool = True


POWER = Quantity("DcActivePower", 1032, WATT, is_double=False, is_statistic=False)
IMPORT = Quantity("DcEnergyTotalImportHp", 1023, WATT_HOUR)
EXPORT = Quantity("DcEnergyTotalExportHp", 1026, WATT_HOUR)
SUM = Quantity("DcEnergyTotalSumHp", 1029, WATT_HOUR)
QUANTITIES = (POWER, IMPORT, EXPORT, SUM)
"""Of the arm's 48 V supply: consumed, fed back and their difference, since the last reset."""


@dataclass(frozen=True)
class Measurement:
    """A value of one metering point.

    Attributes:
        value: W or Wh.
        uncertainty: half width of its 95 % interval, in the same unit; NaN where unknown.
    """

    value: float
    uncertainty: float

    @property
    def accuracy_class(self) -> int:
        """The smallest class of ACCURACY_CLASSES that covers the interval."""
        if not math.isfinite(self.uncertainty):
            return UNKNOWN_CLASS
        percent = 100.0 * self.uncertainty / abs(self.value) if self.value else math.inf
        covering = (k for k, limit in enumerate(ACCURACY_CLASSES, 1) if percent <= limit)
        return next(covering, len(ACCURACY_CLASSES) + 1)


def metering_points(reading: ArmReading) -> dict[str, dict[Quantity, Measurement]]:
    """All measurements of a reading, by metering point; BUS only where it is measured.

    The uncertainties of import and export are that of their difference: the model does not tell
    them apart.
    """
    snapshot = reading.snapshot
    columns, energy = snapshot.channels, snapshot.since_reset
    power_std, energy_std = _deviations(columns, snapshot.power), _deviations(columns, energy.net)
    channels = {MAIN: "total", STANDBY: "standby", DRIVERS: "driver", REGENERATION: "regeneration"}
    positions = {point: columns.arm[channel] for point, channel in channels.items()}
    if snapshot.bus_measured:
        positions[BUS] = columns.arm["bus"]
    first = columns.per_joint["electrical_power"].start
    positions |= {joint: first + i for i, joint in enumerate(reading.joints)}
    joints = dict(zip(reading.joints, columns.joints, strict=True))
    consumed, fed_back = energy.consumed, energy.regenerated
    out = {}
    for point, column in positions.items():
        name = joints.get(point, point)
        wide = CONFIDENCE * energy_std.get(name, math.nan) / JOULES_PER_WATT_HOUR
        out[point] = {
            POWER: Measurement(
                float(snapshot.power[column]), CONFIDENCE * power_std.get(name, math.nan)
            ),
            **{
                quantity: Measurement(float(values[column]) / JOULES_PER_WATT_HOUR, wide)
                for quantity, values in ((IMPORT, consumed), (EXPORT, fed_back), (SUM, energy.net))
            },
        }
    return out


def _deviations(columns: Channels, values: Array) -> dict[str, float]:
    """Standard deviations of MAIN, STANDBY and the joints, by name in the channels."""
    joints, total = columns.deviations(values)
    return {
        MAIN: total,
        STANDBY: columns.deviation_of_standby(values),
        **dict(zip(columns.joints, joints.tolist(), strict=True)),
    }


# Values under the names of the ROS topics, for clients that want numbers and no model.

STATE, LOST = "state", "samples_lost"
CYCLE = "energy/cycle/"


def plain_values(reading: ArmReading) -> dict[str, tuple[float | str, Unit | None]]:
    """Values and units by name; those of cycles only where one has ended."""
    out: dict[str, tuple[float | str, Unit | None]] = {
        name: (value, WATT if name.endswith("/power") else JOULE)
        for name, value in reading.numbers().items()
    }
    out[STATE] = reading.snapshot.state.name.lower(), None
    out[LOST] = reading.link.lost, None
    for cycle in reading.cycles[-1:]:
        energy = float(cycle.reading.net[reading.snapshot.channels.arm["total"]])
        out[f"{CYCLE}number"] = cycle.number, None
        out[f"{CYCLE}energy"] = energy, JOULE
        out[f"{CYCLE}duration"] = cycle.duration, SECOND
        out[f"{CYCLE}peak_power"] = cycle.peak_power, WATT
        out[f"{CYCLE}program"] = cycle.program or "", None
    return out


# AddressSpace: adds nodes with the reference, type and number that they must have.

IDS = ua.ObjectIds
_KINDS = {float: ua.VariantType.Double, int: ua.VariantType.Int64, str: ua.VariantType.String}
NOTHING = ua.Variant(None, ua.VariantType.DateTime)
EMPTY_TEXT = ua.Variant(ua.LocalizedText(""))
_PERCENT = [f"{limit:g} %" for limit in ACCURACY_CLASSES]
CLASS_TEXTS = ("unknown", *_PERCENT, f"more than {_PERCENT[-1]}")


def variant(value: float | str) -> ua.Variant:
    """A number as Double or Int64, or a text."""
    return ua.Variant(value, _KINDS[type(value)])


def unit_variant(unit: Unit) -> ua.Variant:
    """EUInformation of a unit."""
    text = ua.LocalizedText(unit.symbol), ua.LocalizedText(unit.name)
    return ua.Variant(ua.EUInformation(UNITS_URI, unit.number, *text))


def enum_variant(names: tuple[str, ...], descriptions: tuple[str, ...] = ()) -> ua.Variant:
    """EnumValues, numbered from 0."""
    texts = descriptions or ("",) * len(names)
    values = [
        ua.EnumValueType(number, ua.LocalizedText(name), ua.LocalizedText(text))
        for number, (name, text) in enumerate(zip(names, texts, strict=True))
    ]
    return ua.Variant(values, ua.VariantType.ExtensionObject)


RESOURCE_VALUES = enum_variant(RESOURCES)
CLASSES = enum_variant(tuple(f"ACCURACY_CLASS_{k}" for k in range(16)), CLASS_TEXTS)
"""EnumValues of the accuracy domain "percent of the actual reading"."""
Node: TypeAlias = "ua.NodeId | tuple[str, int] | int"
"""A node, its namespace and number, or its number in OPC UA itself."""


class AddressSpace:
    """Adds nodes to a server.

    Args:
        server: initialised, not started.
    """

    def __init__(self, server: Server) -> None:
        self.server, self._session = server, server.iserver.isession
        self.spaces: dict[str, int] = {BASE: 0}
        """Index of each namespace."""

    async def add_types(self) -> None:
        """Add the types of the companion specifications."""
        for uri in SPACES:
            self.spaces[uri] = await self.server.register_namespace(uri)
        await self.server.import_xml(config_file("opcua", "companion_types.xml"))
        for nodes, values in ((CLASS_NAMES, CLASSES), (RESOURCE_NAMES, RESOURCE_VALUES)):
            for node in nodes:
                await self.server.write_attribute_value(self.id(node), ua.DataValue(values))

    def id(self, node: Node) -> ua.NodeId:
        """Identifier of a node."""
        if isinstance(node, ua.NodeId):
            return node
        uri, number = (BASE, node) if isinstance(node, int) else node
        return ua.NodeId(number, self.spaces[uri])

    async def object(
        self, parent: Node, node: ua.NodeId, name: tuple[str, str], kind: Node, by: Node
    ) -> ua.NodeId:
        """Add an object.

        Args:
            parent: node above it.
            node: its identifier.
            name: browse name, and the namespace of it.
            kind: type definition.
            by: reference from the parent.
        """
        attributes = ua.ObjectAttributes()
        return await self._add(parent, node, name, ua.NodeClass.Object, attributes, kind, by)

    async def variable(
        self,
        parent: Node,
        node: ua.NodeId,
        name: tuple[str, str],
        value: ua.Variant,
        kind: Node = IDS.PropertyType,
        *,
        by: Node | None = None,
        writable: bool = False,
        data_type: int | None = None,
    ) -> ua.NodeId:
        """Add a variable, by default a property.

        Args:
            parent: node above it.
            node: its identifier.
            name: browse name, and the namespace of it.
            value: first value.
            kind: type definition.
            by: reference from the parent, default HasProperty or HasComponent.
            writable: whether users may change it.
            data_type: default that of the value.
        """
        access = ua.AccessLevel.CurrentRead.mask
        access |= ua.AccessLevel.CurrentWrite.mask if writable else 0
        is_array = isinstance(value.Value, list)
        attributes = ua.VariableAttributes(
            Value=value,
            DataType=ua.NodeId(int(value.VariantType) if data_type is None else data_type),
            ValueRank=ua.ValueRank.OneDimension if is_array else ua.ValueRank.Scalar,
            ArrayDimensions=[0] if is_array else None,
            AccessLevel=access,
            UserAccessLevel=access,
        )
        if by is None:
            by = IDS.HasProperty if kind == IDS.PropertyType else IDS.HasComponent
        return await self._add(parent, node, name, ua.NodeClass.Variable, attributes, kind, by)

    async def refer(self, source: ua.NodeId, by: Node, target: ua.NodeId) -> None:
        """Add a reference between two nodes, in both directions."""
        items = [
            ua.AddReferencesItem(
                SourceNodeId=start,
                ReferenceTypeId=self.id(by),
                IsForward=forward,
                TargetNodeId=end,
                TargetNodeClass=ua.NodeClass.Unspecified,
            )
            for start, forward, end in ((source, True, target), (target, False, source))
        ]
        for result in await self._session.add_references(items):
            result.check()

    async def _add(
        self,
        parent: Node,
        node: ua.NodeId,
        name: tuple[str, str],
        node_class: ua.NodeClass,
        attributes: Any,
        kind: Node,
        by: Node,
    ) -> ua.NodeId:
        text, uri = name
        attributes.DisplayName = ua.LocalizedText(text)
        item = ua.AddNodesItem(
            ParentNodeId=self.id(parent),
            ReferenceTypeId=self.id(by),
            RequestedNewNodeId=node,
            BrowseName=ua.QualifiedName(text, self.spaces[uri]),
            NodeClass=node_class,
            NodeAttributes=attributes,
            TypeDefinition=self.id(kind),
        )
        (result,) = await self._session.add_nodes([item])
        result.StatusCode.check()
        return node


# Methods of a machine: reset of the counters, and energies since the last call.

LONGEST_REASON = 200
"""Most characters of a reason that are kept."""
_INTERVAL = {
    "accounted_s": "time of the interval that was measured [s]",
    "unaccounted_s": "time of the interval without samples [s]",
    "total_J": "energy of the whole arm [J]",
    "bus_J": "measured energy of the bus [J]",
}


def reset(actions: ArmActions) -> Callable[..., list[ua.Variant]]:
    """ResetEnergy(Reason): sets the counters since reset to zero; the lifetime ones continue."""

    def call(_parent: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        reason = str(arguments[0].Value or "") if arguments else ""
        actions.reset(reason[:LONGEST_REASON] or "OPC UA client")
        return []

    return call


def read_interval(actions: ArmActions) -> Callable[..., list[ua.Variant]]:
    """ReadInterval: energies since the last call of any client, sink or service."""

    def call(_parent: ua.NodeId, *_: ua.Variant) -> list[ua.Variant]:
        found = dict(actions.read_interval())
        numbers = [ua.Variant(_number(found.get(key)), ua.VariantType.Double) for key in _INTERVAL]
        return [*numbers, ua.Variant(json.dumps(found), ua.VariantType.String)]

    return call


async def add_methods(
    space: AddressSpace, machine: ua.NodeId, main: ua.NodeId, actions: ArmActions
) -> None:
    """Add the methods to a machine, and ResetStatistics to its main metering point."""
    own, name = space.spaces[OWN], machine.Identifier
    text, double = ua.VariantType.String, ua.VariantType.Double
    reason = _argument("Reason", text, "kept with the counters")
    outputs = [_argument(key, double, words) for key, words in _INTERVAL.items()]
    outputs.append(_argument("json", text, "all of it, with the joints"))
    for parent, method, uri, call, inputs, results in (
        (machine, "ResetEnergy", OWN, reset(actions), [reason], []),
        (machine, "ReadInterval", OWN, read_interval(actions), [], outputs),
        (main, f"{MAIN}/ResetStatistics", IA, reset(actions), [], []),
    ):
        browse_name = ua.QualifiedName(method.rpartition("/")[2], space.spaces[uri])
        node = ua.NodeId(f"{name}/{method}", own)
        await space.server.get_node(parent).add_method(node, browse_name, call, inputs, results)


def _argument(name: str, kind: ua.VariantType, description: str) -> ua.Argument:
    return ua.Argument(
        Name=name,
        DataType=ua.NodeId(int(kind)),
        ValueRank=ua.ValueRank.Scalar,
        Description=ua.LocalizedText(description),
    )


def _number(value: Any) -> float:
    return float("nan") if value is None else float(value)


# MachineNodes: one arm.

FOLDERS = (
    ("Monitoring", MACHINERY),
    ("Consumption", MACHINERY),
    ("Electricity", MACHINERY_ENERGY),
)
"""From the machine down to its metering points."""
PLAIN = "Energy"
"""Folder of the values under the names of the ROS topics."""
START = "StartTime"
"""Key of the time of the last reset."""


class MachineNodes:
    """The nodes of one arm: made with its readings, written where a value has changed.

    Identifiers of nodes are `arm/key` in the namespace OWN.

    Args:
        space: with the types.
        arm: its name.
    """

    def __init__(self, space: AddressSpace, arm: str) -> None:
        self._space, self._arm = space, arm
        self._made: dict[str, tuple[ua.NodeId, ua.VariantType]] = {}
        """Variables that readings change, and the types of their values, by key."""
        self._points: set[str] = set()
        self._written: dict[str, object] = {}
        self._status = ua.StatusCodes.Good

    async def add(self, reading: ArmReading, actions: ArmActions | None) -> None:
        """Add the machine.

        Args:
            reading: the first one.
            actions: what clients may ask of the estimator, None for nothing.
        """
        space, folder = self._space, IDS.FolderType
        machine = ua.NodeId(self._arm, space.spaces[OWN])
        name = self._arm, OWN
        await space.object(MACHINES, machine, name, IDS.BaseObjectType, IDS.Organizes)
        await self._add_identification(machine, reading)
        parent = machine
        for text, uri in FOLDERS:
            by = IDS.HasComponent if parent is machine else IDS.Organizes
            parent = await space.object(parent, self._id(text), (text, uri), folder, by)
        await self._add_points(metering_points(reading))
        await space.object(machine, self._id(PLAIN), (PLAIN, OWN), folder, IDS.HasComponent)
        if actions is not None:
            await add_methods(space, machine, self._id(MAIN), actions)

    async def write(self, reading: ArmReading) -> None:
        """Write what has changed."""
        points, values = metering_points(reading), dict[str, object]()
        await self._add_points(points)
        for point, measurements in points.items():
            for quantity, measurement in measurements.items():
                key, number = f"{point}/{quantity.name}", measurement.accuracy_class
                values[key] = measurement.value
                values[f"{key}/Uncertainty"] = measurement.uncertainty
                values[f"{key}/AccuracyClass"] = number
                values[f"{key}/AccuracyClass/ValueAsText"] = CLASS_TEXTS[number]
                values[f"{key}/Resource"] = ELECTRICITY
                values[f"{key}/Resource/ValueAsText"] = RESOURCES[ELECTRICITY]
        for name, (value, unit) in plain_values(reading).items():
            if name not in self._made:
                await self._add_plain(name, value, unit)
            values[name] = value
        values[START] = datetime.fromisoformat(reading.snapshot.reset_time)
        everything, self._status = self._status != ua.StatusCodes.Good, ua.StatusCodes.Good
        changed = {
            key: value
            for key, value in values.items()
            if everything or key not in self._written or self._written[key] != value
        }
        self._written |= changed
        await self._write(changed, datetime.fromtimestamp(reading.stamp * 1e-9, timezone.utc))

    async def lose(self) -> None:
        """Mark all values as the last ones before the arm was lost."""
        if self._status == ua.StatusCodes.Good:
            self._status = ua.StatusCodes.UncertainLastUsableValue
            await self._write(self._written, datetime.now(timezone.utc))

    async def _write(self, values: Mapping[str, Any], time: datetime) -> None:
        for key, value in values.items():
            node, kind = self._made[key]
            typed = ua.LocalizedText(value) if kind == ua.VariantType.LocalizedText else value
            data = ua.DataValue(
                ua.Variant(typed, kind), ua.StatusCode(self._status), SourceTimestamp=time
            )
            await self._space.server.write_attribute_value(node, data)

    def _id(self, key: str) -> ua.NodeId:
        return ua.NodeId(f"{self._arm}/{key}", self._space.spaces[OWN])

    async def _changing(
        self,
        parent: ua.NodeId,
        key: str,
        uri: str,
        value: ua.Variant,
        kind: Node = IDS.PropertyType,
        by: Node | None = None,
        name: str = "",
    ) -> ua.NodeId:
        """Add a variable that readings change; its browse name is the end of its key."""
        name = name or key.rpartition("/")[2]
        node = await self._space.variable(parent, self._id(key), (name, uri), value, kind, by=by)
        self._made[key] = (node, value.VariantType)
        return node

    async def _constant(
        self, parent: ua.NodeId, key: str, uri: str, value: ua.Variant, data_type: int | None = None
    ) -> None:
        """Add a property; its browse name is the end of its key."""
        name = key.rpartition("/")[2], uri
        await self._space.variable(parent, self._id(key), name, value, data_type=data_type)

    async def _add_identification(self, machine: ua.NodeId, reading: ArmReading) -> None:
        """The nameplate of OPC 40001-1."""
        serial = reading.snapshot.serial or "unknown"
        model = "" if reading.robot is None else reading.robot.name
        text = "Identification"
        kind, by = MACHINE_IDENTIFICATION_TYPE, IDS.HasAddIn
        parent = await self._space.object(machine, self._id(text), (text, DI), kind, by)
        for name, value in {
            "Manufacturer": ua.Variant(ua.LocalizedText("Universal Robots")),
            "Model": ua.Variant(ua.LocalizedText(model)),
            "SerialNumber": variant(serial),
            "ProductInstanceUri": variant(f"urn:universal-robots:{serial}"),
        }.items():
            await self._constant(parent, f"{text}/{name}", DI, value)

    async def _add_points(self, points: Mapping[str, Mapping[Quantity, Measurement]]) -> None:
        """Add the metering points that are new, as objects of OPC 34100, MAIN first."""
        space = self._space
        for point in [point for point in points if point not in self._points]:
            self._points.add(point)
            name = point, MACHINERY_ENERGY if point == MAIN else OWN
            folder = self._id(FOLDERS[-1][0])
            node = await space.object(
                folder, self._id(point), name, MEASUREMENT_TYPE, IDS.Organizes
            )
            tag = self._id(f"{point}/ApplicationTag")
            await space.variable(node, tag, ("ApplicationTag", ECM), variant(""), writable=True)
            if point == MAIN:
                await self._changing(node, START, IA, NOTHING)
            elif point != BUS:  # which measures the energy of MAIN once more
                await space.refer(self._id(MAIN), CONTAINS, node)
            for quantity in points[point]:
                await self._add_measurement(node, f"{point}/{quantity.name}", quantity)

    async def _add_measurement(self, point: ua.NodeId, key: str, quantity: Quantity) -> None:
        kind = ua.VariantType.Double if quantity.is_double else ua.VariantType.Float
        by: Node = HAS_STATISTIC_COMPONENT if quantity.is_statistic else IDS.HasComponent
        node = await self._changing(point, key, ECM, ua.Variant(0.0, kind), VALUE_TYPE, by)
        domain = ua.Variant(self._space.id(PERCENT_OF_READING), ua.VariantType.NodeId)
        number = ua.Variant(quantity.number, ua.VariantType.UInt16)
        unit = unit_variant(quantity.unit)
        await self._constant(node, f"{key}/AccuracyDomain", ECM, domain)
        await self._constant(node, f"{key}/MeasurementID", ECM, number)
        await self._constant(node, f"{key}/EngineeringUnits", BASE, unit, IDS.EUInformation)
        await self._changing(node, f"{key}/Uncertainty", OWN, variant(0.0))
        for name, names in (("AccuracyClass", CLASSES), ("Resource", RESOURCE_VALUES)):
            zero = ua.Variant(0, ua.VariantType.UInt32)
            own, states = f"{key}/{name}", IDS.MultiStateValueDiscreteType
            child = await self._changing(node, own, ECM, zero, states)
            await self._constant(child, f"{own}/EnumValues", BASE, names, IDS.EnumValueType)
            await self._changing(child, f"{own}/ValueAsText", BASE, EMPTY_TEXT)

    async def _add_plain(self, name: str, value: float | str, unit: Unit | None) -> None:
        """Add a variable with the name of a ROS topic."""
        first, folder = variant(type(value)()), self._id(PLAIN)
        kind = IDS.BaseDataVariableType if unit is None else IDS.AnalogUnitType
        node = await self._changing(folder, name, OWN, first, kind, name=name)
        if unit is not None:
            key = f"{name}/EngineeringUnits"
            await self._constant(node, key, BASE, unit_variant(unit), IDS.EUInformation)
