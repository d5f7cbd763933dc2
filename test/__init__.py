"""Tests and benchmarks; a package, because the standard library has a `test` of its own."""
