# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Nodes of the OPC UA server: an arm as a machine with metering points, methods and values.

Their types are in `companion_types`, the values of metering points in `metering_points`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from asyncua import ua

from ur_energy_model.sinks.opcua.companion_types import (
    BASE,
    CLASS_TEXTS,
    CLASSES,
    CONTAINS,
    DI,
    ECM,
    ELECTRICITY,
    IA,
    IDS,
    MACHINE_IDENTIFICATION_TYPE,
    MACHINERY,
    MACHINERY_ENERGY,
    MACHINES,
    MEASUREMENT_TYPE,
    OWN,
    PERCENT_OF_READING,
    RESOURCE_VALUES,
    RESOURCES,
    VALUE_TYPE,
    AddressSpace,
    NodeNumber,
    variant,
)
from ur_energy_model.sinks.opcua.metering_points import (
    MAIN,
    REPEATED_POINTS,
    Measurand,
    Measurement,
    metering_points,
    plain_values,
)
from ur_energy_model.sinks.sink import ArmActions, ArmReading

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
_INTERVAL_RESULTS = {
    "accounted_s": "time of the interval that was measured [s]",
    "unaccounted_s": "time of the interval without samples [s]",
    "total_J": "energy of the whole arm [J], measured where the bus is",
    "bus_J": "measured energy of the bus [J]",
}
"""Results of the method ReadInterval: keys of an interval of the counters, and their
descriptions for clients."""


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

    Each node has a key. The machine has the key "" and the name of the arm as its
    identifier in OWN; every other node has the identifier `arm/key`.
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
        """Identifier of a node: of this arm by its key, or of a specification by its number."""
        if isinstance(key, str):
            key = f"{self._arm}/{key}" if key else self._arm
        return self._space.id(key)

    async def add(self, reading: ArmReading, actions: ArmActions | None) -> None:
        """Add the machine, its nameplate, folders, metering points and methods.

        Args:
            reading: the first reading of the arm.
            actions: what the methods do; None for a machine without methods.
        """
        await self._add(
            MACHINES, "", OWN, IDS.BaseObjectType, IDS.Organizes, name=self._arm
        )
        nameplate = "Identification"
        serial = reading.snapshot.serial or "unknown"
        await self._add("", nameplate, DI, MACHINE_IDENTIFICATION_TYPE, IDS.HasAddIn)
        model = "" if reading.robot is None else reading.robot.name
        properties = {  # OPC 40001-1
            "Manufacturer": ua.Variant(ua.LocalizedText("Universal Robots")),
            "Model": ua.Variant(ua.LocalizedText(model)),
            "SerialNumber": variant(serial),
            "ProductInstanceUri": variant(f"urn:universal-robots:{serial}"),
        }
        for name, value in properties.items():
            await self._add(nameplate, f"{nameplate}/{name}", DI, value=value)
        parent = ""
        by = (
            IDS.HasComponent
        )  # the machine has the first folder, which organizes the next
        for name, uri in FOLDERS:
            parent = await self._add(parent, name, uri, IDS.FolderType, by)
            by = IDS.Organizes
        await self._add_points(metering_points(reading))
        await self._add("", PLAIN, OWN, IDS.FolderType)
        if actions is not None:
            await self._add_methods(actions)

    async def write(self, reading: ArmReading) -> None:
        """Write the values that have changed; all values if the arm had been lost.

        Args:
            reading: reading of the arm; nodes of new metering points and values are
                added.
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
        """Give all values the status "uncertain, last usable value": the arm is lost."""
        if self._status == ua.StatusCodes.Good:
            self._status = ua.StatusCodes.UncertainLastUsableValue
            await self._write(self._written, datetime.now(timezone.utc))

    async def _write(self, values: Mapping[str, Any], time: datetime) -> None:
        """Write values with the present status.

        Args:
            values: values by key.
            time: time of the sample.
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
            key: key of the new node.
            uri: namespace of the browse name.
            kind: type of the node.
            by: reference from the parent; by default HasProperty for a property, else
                HasComponent.
            name: browse name; by default the end of the key.
            value: first value of the variable; None for an object.
            data_type: data type of the value; by default the type of its variant.
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
            name: key and browse name of the variable.
            value: decides its type.
            unit: EUInformation; None for a text or count.
        """
        kind = IDS.BaseDataVariableType if unit is None else IDS.AnalogUnitType
        empty = variant(type(value)())
        await self._add(PLAIN, name, OWN, kind, name=name, value=empty)
        if unit is not None:
            await self._add_unit(name, unit)

    async def _add_unit(self, above: str, unit: ua.Variant) -> None:
        """Add the unit of a variable.

        Args:
            above: key of the variable.
            unit: EUInformation.
        """
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
            elif point not in REPEATED_POINTS:
                await self._add_contains(point)
            for quantity in points[point]:
                await self._add_measurement(point, quantity)

    async def _add_contains(self, point: str) -> None:
        """Add a reference in both directions: MAIN includes the energy of a point."""
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
        not_stated = ua.Variant(0, ua.VariantType.UInt32)
        empty = ua.Variant(ua.LocalizedText(""))
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
            kind = IDS.MultiStateValueDiscreteType
            await add(key, child, ECM, kind, value=not_stated)
            enum = IDS.EnumValueType
            await add(child, f"{child}/EnumValues", BASE, value=names, data_type=enum)
            await add(child, f"{child}/ValueAsText", BASE, value=empty)

    async def _add_methods(self, actions: ArmActions) -> None:
        """Add the methods to the machine, and ResetStatistics to its main metering point.

        ResetEnergy(Reason) and ResetStatistics set the counters since reset to zero;
        lifetime counters continue. ReadInterval returns the energies since its last call
        by any client, sink or service.
        """

        def reset(_parent: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
            """Set the counters since reset to zero; the only argument is the reason."""
            reason = str(arguments[0].Value or "") if arguments else ""
            actions.reset(reason[:LONGEST_REASON] or "OPC UA client")
            return []

        def read_interval(_parent: ua.NodeId, *_: ua.Variant) -> list[ua.Variant]:
            """The values of _INTERVAL_RESULTS, NaN where unknown, then all values as JSON."""
            found: dict[str, Any] = dict(actions.read_interval())
            results: list[ua.Variant] = []
            for key in _INTERVAL_RESULTS:
                number = found.get(key)
                results.append(variant(math.nan if number is None else float(number)))
            return [*results, variant(json.dumps(found))]

        def argument(name: str, kind: ua.VariantType, words: str) -> ua.Argument:
            """The description of an argument or a result of a method, a scalar."""
            return ua.Argument(
                Name=name,
                DataType=ua.NodeId(int(kind)),
                ValueRank=ua.ValueRank.Scalar,
                Description=ua.LocalizedText(words),
            )

        text = ua.VariantType.String
        double = ua.VariantType.Double
        reason = argument("Reason", text, "kept with the counters")
        outputs = [
            argument(key, double, words) for key, words in _INTERVAL_RESULTS.items()
        ]
        outputs.append(argument("json", text, "all of it, with the joints"))
        for parent, key, uri, call, inputs, results in (
            ("", "ResetEnergy", OWN, reset, [reason], []),
            ("", "ReadInterval", OWN, read_interval, [], outputs),
            (MAIN, f"{MAIN}/ResetStatistics", IA, reset, [], []),
        ):
            name = ua.QualifiedName(key.rpartition("/")[2], self._space.spaces[uri])
            node = self._space.server.get_node(self._id(parent))
            await node.add_method(self._id(key), name, call, inputs, results)
