"""A trajectory on a robot: approach, motion, recording."""
