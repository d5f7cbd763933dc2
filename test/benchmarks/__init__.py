"""Benchmarks: figures to read, not checks."""
