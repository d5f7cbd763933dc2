"""NodeMaker: adds nodes to the address space with the reference, type and number they must have."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from asyncua import Server, ua

from ur_energy_model.sinks.opcua.companion import RESOURCES, UNITS_URI, Unit

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
