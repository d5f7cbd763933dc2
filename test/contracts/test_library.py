# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Names and signatures that the page "As a library" shows."""

from __future__ import annotations

import ast
import inspect
import typing
from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

from test.contracts.golden import check
from test.test_library_page import PAGE, code
from ur_energy_model.rooms import PACKAGE

TREE = ast.parse(code(PAGE.read_text(encoding="utf-8")))
USED = {node.attr for node in ast.walk(TREE) if isinstance(node, ast.Attribute)}
"""Names behind a dot in the code of the page."""


def imported() -> Iterator[tuple[str, Any]]:
    """Everything of the package that the page imports, by its full name."""
    for node in ast.walk(TREE):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE):
            module = import_module(str(node.module))
            for alias in node.names:
                yield f"{node.module}.{alias.name}", getattr(module, alias.name)


def own_classes(annotation: Any) -> Iterator[type]:
    """Classes of the package in an annotation, such as `list[TorqueRows]`."""
    if isinstance(annotation, type) and annotation.__module__.startswith(PACKAGE):
        yield annotation
    for part in typing.get_args(annotation):
        yield from own_classes(part)


def returned(function: Any) -> Any:
    """What a function returns, by its annotations."""
    return typing.get_type_hints(function).get("return")


def members(kind: type) -> Iterator[tuple[str, str, Any]]:
    """Members of a class that the page uses: name, type in words, and type."""
    of_fields = typing.get_type_hints(kind)
    for name in sorted(USED & ({*dir(kind)} | of_fields.keys())):
        member = inspect.getattr_static(kind, name, None)
        if isinstance(member, property | cached_property):
            getter: Any = member.fget if isinstance(member, property) else member.func
            yield name, str(inspect.signature(getter).return_annotation), returned(getter)
        elif inspect.isroutine(member):
            method = getattr(kind, name)
            yield name, str(inspect.signature(method)), returned(method)
        elif name in of_fields:
            own = (inspect.get_annotations(each).get(name) for each in kind.__mro__)
            yield name, str(next(filter(None, own))), of_fields[name]


def test_what_the_page_shows_is_kept() -> None:
    """Functions and classes that are called, and the members of what they return."""
    found: dict[str, Any] = {}
    waiting: list[type] = []
    for name, each in imported():
        if callable(each):
            found[name] = str(inspect.signature(each))
            waiting += [each] if inspect.isclass(each) else own_classes(returned(each))
    done: set[type] = set()
    while waiting:
        kind = waiting.pop()
        if kind in done:
            continue
        done.add(kind)
        used: dict[str, str] = {}
        for name, words, type_of in members(kind):
            used[name] = words
            waiting += own_classes(type_of)
        if used:
            found[f"{kind.__module__}.{kind.__qualname__} members"] = used
    check("library", found)
