"""Plain values and arrays as bytes that are checked when they are read."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import numpy as np

from ur_energy_model.typing import Array

_MAGIC = b"ur_energy_model learning 1\n"
LARGEST = 64 << 20
"""Largest content that is read, unpacked [bytes]."""
_ARRAY, _STRUCTURE = "$array", "structure"


def encoded(values: Any) -> bytes:
    """Bytes of nested dicts with text keys and lists of numbers, text, None and float arrays."""
    arrays: dict[str, Array] = {}
    structure = json.dumps(_plain(values, arrays)).encode()
    packed = io.BytesIO()
    columns = {_STRUCTURE: np.frombuffer(structure, dtype=np.uint8), **arrays}
    np.savez_compressed(packed, allow_pickle=False, **columns)  # type: ignore[arg-type]
    content = packed.getvalue()
    return _MAGIC + hashlib.sha256(content).digest() + content


def decoded(data: bytes) -> Any:
    """The values that `encoded` packed.

    Raises:
        ValueError: the bytes are damaged, or of another kind or version.
    """
    head = len(_MAGIC)
    digest, content = data[head : head + 32], data[head + 32 :]
    if data[:head] != _MAGIC:
        raise ValueError("is not a state of learning, or of another version")
    if hashlib.sha256(content).digest() != digest:
        raise ValueError("is damaged")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > LARGEST:
            raise ValueError("is too large")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return _values(json.loads(arrays[_STRUCTURE].tobytes()), arrays)


def _plain(value: Any, arrays: dict[str, Array]) -> Any:
    """The value with references in place of arrays, which are collected."""
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, dict):
        return {str(key): _plain(entry, arrays) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry, arrays) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def _values(value: Any, arrays: Any) -> Any:
    if isinstance(value, dict):
        if _ARRAY in value:
            return arrays[value[_ARRAY]]
        return {key: _values(entry, arrays) for key, entry in value.items()}
    return [_values(entry, arrays) for entry in value] if isinstance(value, list) else value
