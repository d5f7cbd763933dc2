"""Foxglove: energy topics and the moving arm, by WebSocket or as an MCAP file."""
