"""Lines that the nodes write into the terminal: each kind at a limited rate."""
