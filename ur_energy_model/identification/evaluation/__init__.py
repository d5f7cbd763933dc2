"""Evaluation: how well a model describes a recording."""
