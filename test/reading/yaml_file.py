"""A YAML file from text."""

from __future__ import annotations

from pathlib import Path

from ur_energy_model.errors import ModelFileError
from ur_energy_model.yaml_reader import YamlTree


def tree(content: str, tmp_path: Path) -> YamlTree:
    path = tmp_path / "x.yaml"
    path.write_text(content, encoding="utf-8")
    return YamlTree.read(path, ModelFileError, "do better")
