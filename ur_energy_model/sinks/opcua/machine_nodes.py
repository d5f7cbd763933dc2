"""MachineNodes: one arm as a machine of OPC 40001, with its energies as in OPC 40001-4."""

from __future__ import annotations

from datetime import datetime, timezone

from asyncua import Server, ua

from ur_energy_model.sinks.arm_actions import ArmActions
from ur_energy_model.sinks.arm_reading import ArmReading
from ur_energy_model.sinks.opcua import companion as spec
from ur_energy_model.sinks.opcua.changing_values import ChangingValues
from ur_energy_model.sinks.opcua.companion_types import CompanionTypes
from ur_energy_model.sinks.opcua.measurements import metering_points
from ur_energy_model.sinks.opcua.metering_nodes import START, MeteringNodes
from ur_energy_model.sinks.opcua.methods import add_methods
from ur_energy_model.sinks.opcua.node_maker import IDS, Name, NodeMaker, unit_variant, variant
from ur_energy_model.sinks.opcua.plain_values import PlainValue, plain_values

FOLDERS = (
    ("Monitoring", spec.MACHINERY),
    ("Consumption", spec.MACHINERY),
    ("Electricity", spec.MACHINERY_ENERGY),
)
"""From the machine down to its metering points."""
PLAIN = "Energy"
"""Folder of the values under the names of the ROS topics."""


class MachineNodes:
    """The nodes of one arm.

    Args:
        server: with the types.
        types: of the companion specifications.
        arm: its name.
    """

    def __init__(self, server: Server, types: CompanionTypes, arm: str) -> None:
        self._server, self._types, self._arm = server, types, arm
        self._make = NodeMaker(server)
        self._own = types.spaces[spec.OWN]
        self._values = ChangingValues(server, arm, self._own)
        self._metering: MeteringNodes | None = None
        self._plain: set[str] = set()

    async def add(self, reading: ArmReading, actions: ArmActions | None) -> None:
        """Add all nodes.

        Args:
            reading: the first one.
            actions: what clients may ask of the estimator, None for nothing.
        """
        machines = self._types.id(spec.MACHINERY, spec.MACHINES)
        name = Name(self._arm, self._own, ua.NodeId(self._arm, self._own))
        base, folder = ua.NodeId(IDS.BaseObjectType), ua.NodeId(IDS.FolderType)
        machine = await self._make.object(machines, name, base, IDS.Organizes)
        await self._add_identification(machine, reading)
        parent = machine
        for text, uri in FOLDERS:
            name = Name(text, self._types.spaces[uri], self._values.id(text))
            by = IDS.HasComponent if parent is machine else IDS.Organizes
            parent = await self._make.object(parent, name, folder, by)
        self._metering = MeteringNodes(self._server, self._types, self._values, parent)
        await self._metering.add_missing(metering_points(reading))
        await self._make.object(machine, Name(PLAIN, self._own, self._values.id(PLAIN)), folder)
        if actions is not None:
            await add_methods(self._server, machine, self._values, self._types, actions)

    async def write(self, reading: ArmReading) -> None:
        """Write what changed."""
        assert self._metering is not None
        points, plain = metering_points(reading), plain_values(reading)
        await self._metering.add_missing(points)
        for name, entry in plain.items():
            if name not in self._plain:
                await self._add_plain(name, entry)
        values = self._metering.values_of(points)
        values |= {name: entry.value for name, entry in plain.items()}
        values[START] = datetime.fromisoformat(reading.snapshot.reset_time)
        await self._values.write(values, _time(reading))

    async def lose(self) -> None:
        """Say of all values that they are the last ones before the arm was lost."""
        await self._values.lose(datetime.now(timezone.utc))

    async def _add_identification(self, machine: ua.NodeId, reading: ArmReading) -> None:
        """The nameplate of OPC 40001-1."""
        di, serial = self._types.spaces[spec.DI], reading.snapshot.serial or "unknown"
        kind = self._types.id(spec.MACHINERY, spec.MACHINE_IDENTIFICATION_TYPE)
        name = Name("Identification", di, self._values.id("Identification"))
        parent = await self._make.object(machine, name, kind, IDS.HasAddIn)
        model = "" if reading.robot is None else reading.robot.name
        for text, value in {
            "Manufacturer": ua.Variant(ua.LocalizedText("Universal Robots")),
            "Model": ua.Variant(ua.LocalizedText(model)),
            "SerialNumber": variant(serial),
            "ProductInstanceUri": variant(f"urn:universal-robots:{serial}"),
        }.items():
            child = Name(text, di, self._values.id(f"Identification/{text}"))
            await self._make.variable(parent, child, value)

    async def _add_plain(self, name: str, entry: PlainValue) -> None:
        """A variable with the name of a ROS topic."""
        self._plain.add(name)
        is_number = isinstance(entry.value, int)
        kind = ua.VariantType.Int64 if is_number else variant(entry.value).VariantType
        first = ua.Variant("" if kind == ua.VariantType.String else 0, kind)
        if kind == ua.VariantType.Double:
            first = variant(0.0)
        folder = self._values.id(PLAIN)
        definition = IDS.BaseDataVariableType if entry.unit is None else IDS.AnalogUnitType
        node = await self._values.add(folder, name, name, self._own, first, definition)
        if entry.unit is not None:
            unit = Name("EngineeringUnits", 0, self._values.id(f"{name}/EngineeringUnits"))
            value = unit_variant(entry.unit)
            await self._make.variable(node, unit, value, data_type=IDS.EUInformation)


def _time(reading: ArmReading) -> datetime:
    return datetime.fromtimestamp(reading.stamp * 1e-9, timezone.utc)
