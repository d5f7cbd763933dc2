"""How well a model describes a recording."""
