"""Long recordings: which parts of them the fits use."""
