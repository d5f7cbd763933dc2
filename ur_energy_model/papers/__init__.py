"""The experiments of the papers: a module for each source, and published beside obtained."""
