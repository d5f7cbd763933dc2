"""Types of the companion specifications, and nodes of these types."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from asyncua import Server, ua

from ur_energy_model.energy.meter import CONFIDENCE
from ur_energy_model.energy.powers import Channels
from ur_energy_model.sinks.sink import ArmReading
from ur_energy_model.typing import Array

# Names and numbers of the companion specifications that the server follows.
#
# OPC 34100 Energy Consumption Management 1.0 (ECM), OPC 40001-1 Machinery 1.03 and OPC 40001-4
# Machinery Energy Management 1.0, OPC 10000-200 Industrial Automation (IA), OPC 10000-100 Devices
# (DI): numbers of nodes as in the NodeSets of the OPC Foundation, units as in UN/CEFACT
# Recommendation 20.

DI = "http://opcfoundation.org/UA/DI/"
IA = "http://opcfoundation.org/UA/IA/"
MACHINERY = "http://opcfoundation.org/UA/Machinery/"
ECM = "http://opcfoundation.org/UA/ECM/"
MACHINERY_ENERGY = "http://opcfoundation.org/UA/Machinery/Energy/"
OWN = "urn:ur_energy_model:energy"
"""Namespace of what no specification defines."""
VERSIONS: dict[str, tuple[str, str]] = {
    DI: ("1.04.0", "2022-11-03"),
    IA: ("1.01.2", "2024-02-28"),
    MACHINERY: ("1.03.0", "2023-08-01"),
    ECM: ("1.0.0", "2025-02-01"),
    MACHINERY_ENERGY: ("1.00", "2025-11-01"),
}
"""Version and date of publication of each specification."""

FUNCTIONAL_GROUP_TYPE = 1005
"""In DI."""
STATISTICS_TYPE, STATISTICS_RESET, STATISTICS_START = 1011, 7001, 6046
HAS_STATISTIC_COMPONENT = 4002
"""In IA: IStatisticsType and its children, and the reference to what it resets."""
MACHINES, ITEM_IDENTIFICATION_TYPE, MACHINE_IDENTIFICATION_TYPE = 1001, 1004, 1012
"""In Machinery."""
CONTAINS = 4003
"""In Machinery Energy: from the main metering point to one whose energy it includes."""
ACCURACY_DOMAINS, PERCENT_OF_READING, PERCENT_OF_READING_CLASSES = 5009, 5024, 6273
ACCURACY_DOMAIN_TYPE, ACCURACY_DOMAIN_TYPE_CLASSES = 1014, 6201
MEASUREMENT_TYPE, VALUE_TYPE = 1006, 2002
TAG, MEASUREMENT_RESET, MEASUREMENT_START = 6055, 7008, 6009
VALUE_TYPE_CHILDREN: dict[str, int] = {
    "AccuracyDomain": 6019,
    "AccuracyClass": 6020,
    "AccuracyClass/EnumValues": 6057,
    "AccuracyClass/ValueAsText": 6061,
    "Resource": 6017,
    "Resource/EnumValues": 6111,
    "Resource/ValueAsText": 6113,
    "MeasurementID": 6018,
    "EngineeringUnits": 6021,
}
"""In ECM."""

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


# NodeMaker: adds nodes to the address space with the reference, type and number they must have.

IDS = ua.ObjectIds
MANDATORY, OPTIONAL = IDS.ModellingRule_Mandatory, IDS.ModellingRule_Optional
UTC_TIME = ua.VariantType.DateTime
_KINDS = {float: ua.VariantType.Double, bool: ua.VariantType.Boolean, str: ua.VariantType.String}


@dataclass(frozen=True)
class Name:
    """A node to be made.

    Attributes:
        text: browse name.
        space: index of the namespace of the browse name.
        id: of the node.
    """

    text: str
    space: int
    id: ua.NodeId


class NodeMaker:
    """Makes nodes below others.

    Args:
        server: whose address space gets them.
    """

    def __init__(self, server: Server) -> None:
        self._session = server.iserver.isession

    async def object(
        self, parent: ua.NodeId, name: Name, kind: ua.NodeId, by: int = IDS.HasComponent
    ) -> ua.NodeId:
        """An object of a type; `by` is the reference from its parent."""
        return await self._add(
            parent, name, ua.NodeClass.Object, ua.ObjectAttributes(), ua.NodeId(by), kind
        )

    async def variable(
        self,
        parent: ua.NodeId,
        name: Name,
        value: ua.Variant,
        kind: ua.NodeId | int = IDS.PropertyType,
        *,
        by: ua.NodeId | int | None = None,
        writable: bool = False,
        data_type: int | None = None,
    ) -> ua.NodeId:
        """A variable of a type, by default a property.

        Args:
            parent: node above it.
            name: of the variable.
            value: its first value.
            kind: type definition.
            by: reference from its parent, default HasProperty for a property or HasComponent.
            writable: whether users may change it.
            data_type: default that of the value.
        """
        access = ua.AccessLevel.CurrentRead.mask
        if writable:
            access |= ua.AccessLevel.CurrentWrite.mask
        is_array = isinstance(value.Value, list)
        attributes = ua.VariableAttributes(
            Value=value,
            DataType=ua.NodeId(int(value.VariantType) if data_type is None else data_type),
            ValueRank=ua.ValueRank.OneDimension if is_array else ua.ValueRank.Scalar,
            ArrayDimensions=[0] if is_array else None,
            AccessLevel=access,
            UserAccessLevel=access,
        )
        definition = ua.NodeId(kind) if isinstance(kind, int) else kind
        if by is None:
            is_property = kind == IDS.PropertyType
            by = IDS.HasProperty if is_property else IDS.HasComponent
        reference = ua.NodeId(by) if isinstance(by, int) else by
        node = ua.NodeClass.Variable
        return await self._add(parent, name, node, attributes, reference, definition)

    async def object_type(
        self, parent: ua.NodeId, name: Name, *, abstract: bool = False
    ) -> ua.NodeId:
        """A subtype of an object type."""
        attributes = ua.ObjectTypeAttributes(IsAbstract=abstract)
        return await self._subtype(parent, name, ua.NodeClass.ObjectType, attributes)

    async def variable_type(self, parent: ua.NodeId, name: Name) -> ua.NodeId:
        """A subtype of a variable type, for values of any type."""
        attributes = ua.VariableTypeAttributes(
            DataType=ua.NodeId(IDS.BaseDataType), ValueRank=ua.ValueRank.Any, IsAbstract=False
        )
        return await self._subtype(parent, name, ua.NodeClass.VariableType, attributes)

    async def reference_type(self, parent: ua.NodeId, name: Name, inverse: str) -> ua.NodeId:
        """A subtype of a reference type."""
        attributes = ua.ReferenceTypeAttributes(
            IsAbstract=False, Symmetric=False, InverseName=ua.LocalizedText(inverse)
        )
        return await self._subtype(parent, name, ua.NodeClass.ReferenceType, attributes)

    async def method(self, parent: ua.NodeId, name: Name) -> ua.NodeId:
        """A method without arguments that belongs to a type."""
        attributes = ua.MethodAttributes(Executable=True, UserExecutable=True)
        by, kind = ua.NodeId(IDS.HasComponent), ua.NodeId()
        return await self._add(parent, name, ua.NodeClass.Method, attributes, by, kind)

    async def refer(self, source: ua.NodeId, by: ua.NodeId | int, target: ua.NodeId) -> None:
        """A reference between two nodes, in both directions."""
        reference = ua.NodeId(by) if isinstance(by, int) else by
        items = [
            ua.AddReferencesItem(
                SourceNodeId=start,
                ReferenceTypeId=reference,
                IsForward=forward,
                TargetNodeId=end,
                TargetNodeClass=ua.NodeClass.Unspecified,
            )
            for start, forward, end in ((source, True, target), (target, False, source))
        ]
        for result in await self._session.add_references(items):
            result.check()

    async def rule(self, node: ua.NodeId, rule: int) -> None:
        """Say whether instances of a type must have a child (MANDATORY, OPTIONAL)."""
        item = ua.AddReferencesItem(
            SourceNodeId=node,
            ReferenceTypeId=ua.NodeId(IDS.HasModellingRule),
            IsForward=True,
            TargetNodeId=ua.NodeId(rule),
            TargetNodeClass=ua.NodeClass.Object,
        )
        (result,) = await self._session.add_references([item])
        result.check()

    async def _subtype(
        self, parent: ua.NodeId, name: Name, node: ua.NodeClass, attributes: Any
    ) -> ua.NodeId:
        by = ua.NodeId(IDS.HasSubtype)
        return await self._add(parent, name, node, attributes, by, ua.NodeId())

    async def _add(
        self,
        parent: ua.NodeId,
        name: Name,
        node: ua.NodeClass,
        attributes: Any,
        by: ua.NodeId,
        kind: ua.NodeId,
    ) -> ua.NodeId:
        attributes.DisplayName = ua.LocalizedText(name.text)
        item = ua.AddNodesItem(
            ParentNodeId=parent,
            ReferenceTypeId=by,
            RequestedNewNodeId=name.id,
            BrowseName=ua.QualifiedName(name.text, name.space),
            NodeClass=node,
            NodeAttributes=attributes,
            TypeDefinition=kind,
        )
        (result,) = await self._session.add_nodes([item])
        result.StatusCode.check()
        return name.id


def variant(value: float | bool | str | datetime) -> ua.Variant:
    """A number as Double, a truth value, a text or a time."""
    return ua.Variant(value, _KINDS.get(type(value), UTC_TIME))


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

EMPTY_TEXT = ua.Variant(ua.LocalizedText(""))
_PERCENT = [f"{limit:g} %" for limit in ACCURACY_CLASSES]
CLASS_TEXTS = ("unknown", *_PERCENT, f"more than {_PERCENT[-1]}")
CLASSES = enum_variant(tuple(f"ACCURACY_CLASS_{k}" for k in range(16)), CLASS_TEXTS)
"""EnumValues of the accuracy domain "percent of the actual reading"."""


class CompanionTypes:
    """Adds the types to a server.

    Args:
        server: initialised, not started.
    """

    def __init__(self, server: Server) -> None:
        self._server, self._make = server, NodeMaker(server)
        self.spaces: dict[str, int] = {}
        """Index of each namespace."""

    def id(self, uri: str, number: int) -> ua.NodeId:
        """Node of a specification."""
        return ua.NodeId(number, self.spaces[uri])

    async def add(self) -> None:
        """Add everything."""
        for uri in (*VERSIONS, OWN):
            self.spaces[uri] = await self._server.register_namespace(uri)
        for uri, (version, date) in VERSIONS.items():
            await self._add_metadata(uri, version, date)
        await self._add_machinery()
        await self._add_statistics()
        await self._add_accuracy()
        await self._add_measurements()

    def _name(self, uri: str, number: int, text: str) -> Name:
        return Name(text, self.spaces[uri], self.id(uri, number))

    def _child(self, number: int, text: str) -> Name:
        """A child in ECM whose browse name OPC UA itself defines."""
        return Name(text, 0, self.id(ECM, number))

    async def _add_metadata(self, uri: str, version: str, date: str) -> None:
        """What a client needs to know of a namespace: above all that it is a part."""
        own, make = self.spaces[OWN], self._make
        published = datetime.fromisoformat(date).replace(tzinfo=timezone.utc)
        values = {
            "NamespaceUri": variant(uri),
            "NamespaceVersion": variant(version),
            "NamespacePublicationDate": variant(published),
            "IsNamespaceSubset": variant(True),
            "StaticNodeIdTypes": ua.Variant([0], ua.VariantType.Int32),
            "StaticNumericNodeIdRange": ua.Variant(["1:65535"], ua.VariantType.String),
            "StaticStringNodeIdPattern": variant(""),
        }
        types = {"StaticNodeIdTypes": IDS.IdType, "StaticNumericNodeIdRange": IDS.NumericRange}
        name = Name(uri, self.spaces[uri], ua.NodeId(f"namespaces/{uri}", own))
        parent = await make.object(
            ua.NodeId(IDS.Server_Namespaces), name, ua.NodeId(IDS.NamespaceMetadataType)
        )
        for key, value in values.items():
            child = Name(key, 0, ua.NodeId(f"namespaces/{uri}/{key}", own))
            await make.variable(parent, child, value, data_type=types.get(key))

    async def _add_machinery(self) -> None:
        make, folder = self._make, ua.NodeId(IDS.FolderType)
        group = self._name(DI, FUNCTIONAL_GROUP_TYPE, "FunctionalGroupType")
        parent = await make.object_type(folder, group)
        for number, text in (
            (ITEM_IDENTIFICATION_TYPE, "MachineryItemIdentificationType"),
            (MACHINE_IDENTIFICATION_TYPE, "MachineIdentificationType"),
        ):
            name = self._name(MACHINERY, number, text)
            parent = await make.object_type(parent, name)
        machines = self._name(MACHINERY, MACHINES, "Machines")
        await make.object(ua.NodeId(IDS.ObjectsFolder), machines, folder, IDS.Organizes)
        contains = self._name(MACHINERY_ENERGY, CONTAINS, "Contains")
        hierarchical = ua.NodeId(IDS.HierarchicalReferences)
        await make.reference_type(hierarchical, contains, "ContainedIn")

    async def _add_statistics(self) -> None:
        make = self._make
        name = self._name(IA, STATISTICS_TYPE, "IStatisticsType")
        kind = await make.object_type(ua.NodeId(IDS.BaseInterfaceType), name, abstract=True)
        await self._add_reset(kind, IA, STATISTICS_RESET, STATISTICS_START)
        reference = self._name(IA, HAS_STATISTIC_COMPONENT, "HasStatisticComponent")
        component = ua.NodeId(IDS.HasComponent)
        await make.reference_type(component, reference, "StatisticComponentOf")

    async def _add_reset(self, kind: ua.NodeId, uri: str, reset: int, start: int) -> None:
        """ResetStatistics and StartTime of a type."""
        space = self.spaces[IA]
        method = Name("ResetStatistics", space, self.id(uri, reset))
        time = Name("StartTime", space, self.id(uri, start))
        nothing = ua.Variant(None, ua.VariantType.DateTime)
        await self._make.rule(await self._make.method(kind, method), OPTIONAL)
        await self._make.rule(await self._make.variable(kind, time, nothing), OPTIONAL)

    async def _add_accuracy(self) -> None:
        make = self._make
        name = self._name(ECM, ACCURACY_DOMAIN_TYPE, "AccuracyDomainType")
        kind = await make.object_type(ua.NodeId(IDS.BaseObjectType), name)
        values = self._child(ACCURACY_DOMAIN_TYPE_CLASSES, "EnumValues")
        await make.rule(await make.variable(kind, values, enum_variant(())), MANDATORY)
        folder = await make.object(
            ua.NodeId(IDS.Server_ServerCapabilities),
            self._name(ECM, ACCURACY_DOMAINS, "AccuracyDomains"),
            ua.NodeId(IDS.FolderType),
            IDS.Organizes,
        )
        domain = self._name(ECM, PERCENT_OF_READING, "ACCURACY_DOMAIN_PERCENT_ACTUAL_READING")
        parent = await make.object(folder, domain, kind, IDS.Organizes)
        classes = self._child(PERCENT_OF_READING_CLASSES, "EnumValues")
        await make.variable(parent, classes, CLASSES)

    async def _add_measurements(self) -> None:
        make, ecm = self._make, self.spaces[ECM]
        name = self._name(ECM, MEASUREMENT_TYPE, "EnergyMeasurementType")
        kind = await make.object_type(ua.NodeId(IDS.BaseObjectType), name)
        tag = self._name(ECM, TAG, "ApplicationTag")
        await make.rule(await make.variable(kind, tag, variant(""), writable=True), MANDATORY)
        await self._add_reset(kind, ECM, MEASUREMENT_RESET, MEASUREMENT_START)
        await make.refer(kind, IDS.HasInterface, self.id(IA, STATISTICS_TYPE))
        name = self._name(ECM, VALUE_TYPE, "EnergyMeasurementValueType")
        value_type = await make.variable_type(ua.NodeId(IDS.BaseDataVariableType), name)

        def child(path: str) -> Name:
            text = path.rpartition("/")[2]
            own = text in ("AccuracyDomain", "AccuracyClass", "Resource", "MeasurementID")
            space = ecm if own else 0
            return Name(text, space, self.id(ECM, VALUE_TYPE_CHILDREN[path]))

        properties = {
            "AccuracyDomain": (ua.Variant(ua.NodeId(), ua.VariantType.NodeId), MANDATORY),
            "MeasurementID": (ua.Variant(0, ua.VariantType.UInt16), OPTIONAL),
            "EngineeringUnits": (ua.Variant(ua.EUInformation()), OPTIONAL),
        }
        for path, (value, rule) in properties.items():
            data_type = IDS.EUInformation if path == "EngineeringUnits" else None
            node = await make.variable(value_type, child(path), value, data_type=data_type)
            await make.rule(node, rule)
        for path, values in (("AccuracyClass", CLASSES), ("Resource", RESOURCE_VALUES)):
            zero = ua.Variant(0, ua.VariantType.UInt32)
            states = IDS.MultiStateValueDiscreteType
            node = await make.variable(value_type, child(path), zero, states)
            await make.rule(node, MANDATORY)
            enum_values = child(f"{path}/EnumValues")
            await make.variable(node, enum_values, values, data_type=IDS.EnumValueType)
            await make.variable(node, child(f"{path}/ValueAsText"), EMPTY_TEXT)
