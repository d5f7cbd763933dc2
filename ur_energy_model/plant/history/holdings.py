"""Holdings: which files of a history store count, and what is wrong with the others, in words."""

from __future__ import annotations

from dataclasses import dataclass, field

from ur_energy_model.plant.history.source_record import FileName

MOST_LINES = 20
"""Warnings; of more, the number."""


@dataclass(frozen=True)
class Holdings:
    """What a store holds.

    Attributes:
        files: names of those that count, with the models.
        warnings: what is lost, changed, left out or foreign, in one line each.
    """

    files: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass
class Comparison:
    """Collects what is found of the files of a store.

    Attributes:
        good: names of files that count.
        unfinished: those of sources whose adding has not ended.
    """

    good: list[str] = field(default_factory=list)
    unfinished: set[str] = field(default_factory=set)
    _changed: dict[str, list[str]] = field(default_factory=dict)
    _lost: dict[str, list[str]] = field(default_factory=dict)
    _foreign: dict[str, list[str]] = field(default_factory=dict)
    _records: list[str] = field(default_factory=list)

    def add(self, name: str, owner: str, *, good: bool) -> None:
        """A file that a record names.

        Args:
            name: of the file.
            owner: path of its bag; "" for a live writer.
            good: whether it is what was written.
        """
        if good:
            self.good.append(name)
        else:
            self._changed.setdefault(owner, []).append(name)

    def lost(self, name: str, owner: str) -> None:
        """A file that a record names is not there."""
        self._lost.setdefault(owner, []).append(name)

    def foreign(self, name: str) -> None:
        """A file that no record names."""
        file = FileName.of(name)
        self._foreign.setdefault(name if file is None else file.source, []).append(name)

    def foreign_record(self, name: str, problem: str) -> None:
        """What is no record of the store."""
        self._records.append(f"{name}: {problem}; it is left as it is")

    def warnings(self) -> tuple[str, ...]:
        """All that is wrong, in one line each."""
        lines = []
        for words, wrong in (("lost", self._lost), ("changed", self._changed)):
            for owner, names in wrong.items():
                where = f"{_some(names)} {'are' if len(names) > 1 else 'is'} {words}"
                lines.append(
                    f"{where}, the sums lack its rows; add {owner} again"
                    if owner
                    else f"{where}, the sums lack the rows that the estimator wrote there"
                )
        lines += [
            f"{_some(names)}: no record names it (a copy?); it does not count, and is left as it is"
            for names in self._foreign.values()
        ]
        lines += self._records
        if self.unfinished:
            lines.append(
                f"{_some(sorted(self.unfinished))}: adding it has not ended; it does not count "
                "until it is added again"
            )
        more = len(lines) - MOST_LINES
        return (*lines[:MOST_LINES], *([f"and {more} more of this kind"] if more > 0 else []))


def _some(names: list[str]) -> str:
    """The first of some names, and how many more there are."""
    more = len(names) - 1
    return names[0] if not more else f"{names[0]} and {more} more file{'s' * (more > 1)}"
