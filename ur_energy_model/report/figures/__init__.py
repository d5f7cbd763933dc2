"""Charts as static figures (PNG, SVG) with matplotlib."""
