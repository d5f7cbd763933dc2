"""Hash of a bag, by which its provenance names it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ur_energy_model.files import open_regular

_PIECE = 1 << 20


def bag_hash(path: Path) -> str:
    """SHA-256 over a bag's files, in the order of their names."""
    total = hashlib.sha256()
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for file in files:
        if file.is_file():
            with open_regular(file) as stream:
                for piece in iter(lambda: stream.read(_PIECE), b""):
                    total.update(piece)
    return total.hexdigest()
