"""Many arms over months: history in Parquet, questions in DuckDB, work on many cores with Dask."""
