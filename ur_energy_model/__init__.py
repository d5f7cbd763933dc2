"""Electro-mechanical identification and live energy estimation of Universal Robots arms."""

__version__ = "0.1.0"
