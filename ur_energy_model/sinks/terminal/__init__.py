"""The live view in a terminal, and lines for pipes."""
