"""Model files: strict reading and atomic writing."""
