"""Lines that the nodes write into the terminal: what happens, and no kind of line too often."""
