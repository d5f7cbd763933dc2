"""StorageUse: what the bags of a folder take, and what a budget has cost them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StorageUse:
    """Bags of a folder under a budget.

    Attributes:
        bytes: of all storage files.
        files: number of them.
        oldest_days: age of the oldest file that may be deleted [days], None without one.
        marked: files that are kept because of their marks.
        removed_files, removed_bytes: deleted so far.
        problem: why the budget cannot be kept, None while it is.
    """

    bytes: int = 0
    files: int = 0
    oldest_days: float | None = None
    marked: int = 0
    removed_files: int = 0
    removed_bytes: int = 0
    problem: str | None = None
