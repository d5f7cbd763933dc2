"""ChangingValues: the variables that readings change."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from asyncua import Server, ua

from ur_energy_model.sinks.opcua.node_maker import IDS, Name, NodeMaker


class ChangingValues:
    """Makes variables under keys, and writes those whose value or status changed.

    Args:
        server: that has them.
        prefix: of their node identifiers, `prefix/key`.
        space: namespace of the identifiers.
    """

    def __init__(self, server: Server, prefix: str, space: int) -> None:
        self._server, self._make = server, NodeMaker(server)
        self._prefix, self._space = prefix, space
        self._nodes: dict[str, tuple[ua.NodeId, ua.VariantType]] = {}
        self._written: dict[str, object] = {}
        self._status = ua.StatusCodes.Good

    def id(self, key: str) -> ua.NodeId:
        """Identifier of a node of this arm."""
        return ua.NodeId(f"{self._prefix}/{key}", self._space)

    async def add(
        self,
        parent: ua.NodeId,
        key: str,
        text: str,
        space: int,
        value: ua.Variant,
        kind: ua.NodeId | int = IDS.PropertyType,
        *,
        by: ua.NodeId | int | None = None,
    ) -> ua.NodeId:
        """Make a variable.

        Args:
            parent: node above it.
            key: of its values.
            text: browse name.
            space: namespace of the browse name.
            value: first value, which also states the type.
            kind: type definition.
            by: reference from its parent.
        """
        name = Name(text, space, self.id(key))
        node = await self._make.variable(parent, name, value, kind, by=by)
        self._nodes[key] = (node, value.VariantType)
        return node

    async def write(self, values: Mapping[str, object], time: datetime) -> None:
        """Write values by key; those that stayed the same are left alone."""
        everything, self._status = self._status != ua.StatusCodes.Good, ua.StatusCodes.Good
        for key, value in values.items():
            if everything or self._written.get(key) != value:
                self._written[key] = value
                await self._write(key, value, time)

    async def lose(self, time: datetime) -> None:
        """Say of all values that they are the last ones before the arm was lost."""
        if self._status == ua.StatusCodes.Good:
            self._status = ua.StatusCodes.UncertainLastUsableValue
            for key, value in self._written.items():
                await self._write(key, value, time)

    async def _write(self, key: str, value: Any, time: datetime) -> None:
        node, kind = self._nodes[key]
        if kind == ua.VariantType.LocalizedText:
            value = ua.LocalizedText(value)
        data = ua.DataValue(
            ua.Variant(value, kind), ua.StatusCode(self._status), SourceTimestamp=time
        )
        await self._server.write_attribute_value(node, data)
