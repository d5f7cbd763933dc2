"""Joint trajectories: Fourier series, point-to-point and named motions, plans from CSV files."""
