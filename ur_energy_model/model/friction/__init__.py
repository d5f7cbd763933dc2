"""Friction laws: terms, curves and the bank of all joints."""
