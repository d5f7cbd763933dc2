"""History of arms: energy per second and per cycle, as a Parquet dataset."""
