"""From bags to an identified model."""
