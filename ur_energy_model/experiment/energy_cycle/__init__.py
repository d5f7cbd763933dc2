"""An optimized cycle leaves the computer: files for programs, and the proof on the arm."""
