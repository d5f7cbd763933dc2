"""Payload identification from motor currents."""
