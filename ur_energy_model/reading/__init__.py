"""Strict and bounded reading of the YAML files that people write and pass on."""
