"""Friction laws: their terms, presliding, and the friction of all joints."""
