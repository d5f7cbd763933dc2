"""CompanionTypes: the types of the companion specifications that the server's objects have.

Only these nodes of the specifications' NodeSets are in the address space, with their own numbers;
the metadata of each namespace states that it is a part.
"""

from __future__ import annotations

from datetime import datetime, timezone

from asyncua import Server, ua

from ur_energy_model.sinks.opcua import companion as spec
from ur_energy_model.sinks.opcua.measurements import ACCURACY_CLASSES
from ur_energy_model.sinks.opcua.node_maker import (
    IDS,
    MANDATORY,
    OPTIONAL,
    RESOURCE_VALUES,
    Name,
    NodeMaker,
    enum_variant,
    variant,
)

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
        for uri in (*spec.VERSIONS, spec.OWN):
            self.spaces[uri] = await self._server.register_namespace(uri)
        for uri, (version, date) in spec.VERSIONS.items():
            await self._add_metadata(uri, version, date)
        await self._add_machinery()
        await self._add_statistics()
        await self._add_accuracy()
        await self._add_measurements()

    def _name(self, uri: str, number: int, text: str) -> Name:
        return Name(text, self.spaces[uri], self.id(uri, number))

    def _child(self, number: int, text: str) -> Name:
        """A child in ECM whose browse name OPC UA itself defines."""
        return Name(text, 0, self.id(spec.ECM, number))

    async def _add_metadata(self, uri: str, version: str, date: str) -> None:
        """What a client needs to know of a namespace: above all that it is a part."""
        own, make = self.spaces[spec.OWN], self._make
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
        group = self._name(spec.DI, spec.FUNCTIONAL_GROUP_TYPE, "FunctionalGroupType")
        parent = await make.object_type(folder, group)
        for number, text in (
            (spec.ITEM_IDENTIFICATION_TYPE, "MachineryItemIdentificationType"),
            (spec.MACHINE_IDENTIFICATION_TYPE, "MachineIdentificationType"),
        ):
            name = self._name(spec.MACHINERY, number, text)
            parent = await make.object_type(parent, name)
        machines = self._name(spec.MACHINERY, spec.MACHINES, "Machines")
        await make.object(ua.NodeId(IDS.ObjectsFolder), machines, folder, IDS.Organizes)
        contains = self._name(spec.MACHINERY_ENERGY, spec.CONTAINS, "Contains")
        hierarchical = ua.NodeId(IDS.HierarchicalReferences)
        await make.reference_type(hierarchical, contains, "ContainedIn")

    async def _add_statistics(self) -> None:
        make = self._make
        name = self._name(spec.IA, spec.STATISTICS_TYPE, "IStatisticsType")
        kind = await make.object_type(ua.NodeId(IDS.BaseInterfaceType), name, abstract=True)
        await self._add_reset(kind, spec.IA, spec.STATISTICS_RESET, spec.STATISTICS_START)
        reference = self._name(spec.IA, spec.HAS_STATISTIC_COMPONENT, "HasStatisticComponent")
        component = ua.NodeId(IDS.HasComponent)
        await make.reference_type(component, reference, "StatisticComponentOf")

    async def _add_reset(self, kind: ua.NodeId, uri: str, reset: int, start: int) -> None:
        """ResetStatistics and StartTime of a type."""
        space = self.spaces[spec.IA]
        method = Name("ResetStatistics", space, self.id(uri, reset))
        time = Name("StartTime", space, self.id(uri, start))
        nothing = ua.Variant(None, ua.VariantType.DateTime)
        await self._make.rule(await self._make.method(kind, method), OPTIONAL)
        await self._make.rule(await self._make.variable(kind, time, nothing), OPTIONAL)

    async def _add_accuracy(self) -> None:
        make = self._make
        name = self._name(spec.ECM, spec.ACCURACY_DOMAIN_TYPE, "AccuracyDomainType")
        kind = await make.object_type(ua.NodeId(IDS.BaseObjectType), name)
        values = self._child(spec.ACCURACY_DOMAIN_TYPE_CLASSES, "EnumValues")
        await make.rule(await make.variable(kind, values, enum_variant(())), MANDATORY)
        folder = await make.object(
            ua.NodeId(IDS.Server_ServerCapabilities),
            self._name(spec.ECM, spec.ACCURACY_DOMAINS, "AccuracyDomains"),
            ua.NodeId(IDS.FolderType),
            IDS.Organizes,
        )
        domain = self._name(
            spec.ECM, spec.PERCENT_OF_READING, "ACCURACY_DOMAIN_PERCENT_ACTUAL_READING"
        )
        parent = await make.object(folder, domain, kind, IDS.Organizes)
        classes = self._child(spec.PERCENT_OF_READING_CLASSES, "EnumValues")
        await make.variable(parent, classes, CLASSES)

    async def _add_measurements(self) -> None:
        make, ecm = self._make, self.spaces[spec.ECM]
        name = self._name(spec.ECM, spec.MEASUREMENT_TYPE, "EnergyMeasurementType")
        kind = await make.object_type(ua.NodeId(IDS.BaseObjectType), name)
        tag = self._name(spec.ECM, spec.TAG, "ApplicationTag")
        await make.rule(await make.variable(kind, tag, variant(""), writable=True), MANDATORY)
        await self._add_reset(kind, spec.ECM, spec.MEASUREMENT_RESET, spec.MEASUREMENT_START)
        await make.refer(kind, IDS.HasInterface, self.id(spec.IA, spec.STATISTICS_TYPE))
        name = self._name(spec.ECM, spec.VALUE_TYPE, "EnergyMeasurementValueType")
        value_type = await make.variable_type(ua.NodeId(IDS.BaseDataVariableType), name)

        def child(path: str) -> Name:
            text = path.rpartition("/")[2]
            own = text in ("AccuracyDomain", "AccuracyClass", "Resource", "MeasurementID")
            space = ecm if own else 0
            return Name(text, space, self.id(spec.ECM, spec.VALUE_TYPE_CHILDREN[path]))

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
