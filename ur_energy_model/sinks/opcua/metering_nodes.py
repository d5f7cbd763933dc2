"""MeteringNodes: the metering points of one arm as objects of OPC 34100."""

from __future__ import annotations

from asyncua import Server, ua

from ur_energy_model.sinks.opcua import companion as spec
from ur_energy_model.sinks.opcua.changing_values import ChangingValues
from ur_energy_model.sinks.opcua.companion_types import (
    CLASS_TEXTS,
    CLASSES,
    EMPTY_TEXT,
    CompanionTypes,
)
from ur_energy_model.sinks.opcua.measurements import BUS, MAIN, Measurement, Quantity
from ur_energy_model.sinks.opcua.node_maker import (
    IDS,
    RESOURCE_VALUES,
    Name,
    NodeMaker,
    unit_variant,
    variant,
)

START = "StartTime"
"""Key of the time of the last reset."""
Points = dict[str, dict[Quantity, Measurement]]


class MeteringNodes:
    """Adds metering points below a folder, and gives the values of their variables.

    Args:
        server: that has them.
        types: of the companion specifications.
        values: of the arm.
        folder: above the metering points.
    """

    def __init__(
        self, server: Server, types: CompanionTypes, values: ChangingValues, folder: ua.NodeId
    ) -> None:
        self._make, self._types = NodeMaker(server), types
        self._values, self._folder = values, folder
        self._known: set[str] = set()

    async def add_missing(self, points: Points) -> None:
        """Add the metering points that are new, MAIN first."""
        for point, measurements in points.items():
            if point not in self._known:
                self._known.add(point)
                await self._add_point(point)
                for quantity in measurements:
                    await self._add_measurement(point, quantity)

    @staticmethod
    def values_of(points: Points) -> dict[str, object]:
        """Values by key."""
        out: dict[str, object] = {}
        for point, measurements in points.items():
            for quantity, measurement in measurements.items():
                key, number = f"{point}/{quantity.name}", measurement.accuracy_class
                out[key] = measurement.value
                out[f"{key}/Uncertainty"] = measurement.uncertainty
                out[f"{key}/AccuracyClass"] = number
                out[f"{key}/AccuracyClass/ValueAsText"] = CLASS_TEXTS[number]
                out[f"{key}/Resource"] = spec.ELECTRICITY
                out[f"{key}/Resource/ValueAsText"] = spec.RESOURCES[spec.ELECTRICITY]
        return out

    async def _add_point(self, point: str) -> None:
        types, spaces, values = self._types, self._types.spaces, self._values
        space = spaces[spec.MACHINERY_ENERGY] if point == MAIN else spaces[spec.OWN]
        kind = types.id(spec.ECM, spec.MEASUREMENT_TYPE)
        name = Name(point, space, values.id(point))
        node = await self._make.object(self._folder, name, kind, IDS.Organizes)
        tag = Name("ApplicationTag", spaces[spec.ECM], values.id(f"{point}/ApplicationTag"))
        await self._make.variable(node, tag, variant(""), writable=True)
        if point == MAIN:
            nothing = ua.Variant(None, ua.VariantType.DateTime)
            await values.add(node, START, "StartTime", spaces[spec.IA], nothing)
        elif point != BUS:  # which measures the energy of MAIN once more
            contains = types.id(spec.MACHINERY_ENERGY, spec.CONTAINS)
            await self._make.refer(values.id(MAIN), contains, node)

    async def _add_measurement(self, point: str, quantity: Quantity) -> None:
        types, values, key = self._types, self._values, f"{point}/{quantity.name}"
        ecm, own = types.spaces[spec.ECM], types.spaces[spec.OWN]
        kind = ua.VariantType.Double if quantity.is_double else ua.VariantType.Float
        statistic = types.id(spec.IA, spec.HAS_STATISTIC_COMPONENT)
        node = await values.add(
            values.id(point),
            key,
            quantity.name,
            ecm,
            ua.Variant(0.0, kind),
            types.id(spec.ECM, spec.VALUE_TYPE),
            by=statistic if quantity.is_statistic else IDS.HasComponent,
        )
        domain = types.id(spec.ECM, spec.PERCENT_OF_READING)
        for text, space, value, data_type in (
            ("AccuracyDomain", ecm, ua.Variant(domain, ua.VariantType.NodeId), None),
            ("MeasurementID", ecm, ua.Variant(quantity.number, ua.VariantType.UInt16), None),
            ("EngineeringUnits", 0, unit_variant(quantity.unit), IDS.EUInformation),
        ):
            name = Name(text, space, values.id(f"{key}/{text}"))
            await self._make.variable(node, name, value, data_type=data_type)
        await values.add(node, f"{key}/Uncertainty", "Uncertainty", own, variant(0.0))
        await self._add_states(node, f"{key}/AccuracyClass", CLASSES)
        await self._add_states(node, f"{key}/Resource", RESOURCE_VALUES)

    async def _add_states(self, parent: ua.NodeId, key: str, names: ua.Variant) -> None:
        """A variable of MultiStateValueDiscreteType."""
        text = key.rpartition("/")[2]
        number = ua.Variant(0, ua.VariantType.UInt32)
        states = IDS.MultiStateValueDiscreteType
        space = self._types.spaces[spec.ECM]
        node = await self._values.add(parent, key, text, space, number, states)
        name = Name("EnumValues", 0, self._values.id(f"{key}/EnumValues"))
        await self._make.variable(node, name, names, data_type=IDS.EnumValueType)
        await self._values.add(node, f"{key}/ValueAsText", "ValueAsText", 0, EMPTY_TEXT)
