"""Strict reading of YAML files in bounded time and memory."""
