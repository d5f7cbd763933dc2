"""Hostile YAML, CSV, MCAP and model files: read or refused in one line, in bounded resources."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from test.torture.bags import healthy_bag
from test.torture.case import Case, Family, Verdict
from test.torture.hostile_files import bag_of_bomb, csv_file, mcap_file, shifted_csv, yaml_file
from test.torture.reading import worker_of


def run(case: Case) -> Verdict:
    """One hostile file; the kinds take turns."""
    makers: list[Callable[[], tuple[str, Path]]] = [
        lambda: yaml_file(case.folder, case.random),
        lambda: csv_file(case.folder, case.random),
        lambda: shifted_csv(case.folder, case.random),
        lambda: mcap_file(case.folder, case.random),
        lambda: bag_of_bomb(case.folder, case.random, healthy_bag(case.around)),
    ]
    kind, path = makers[case.number % len(makers)]()
    size = path.stat().st_size if path.is_file() else 0
    verdict = Verdict(f"{path.name} of {size} bytes as {kind}")
    worker_of(case.around).judge(verdict, kind, path)
    if path.is_file():
        path.unlink()
    return verdict


FAMILY = Family("files", 1.5, run)
