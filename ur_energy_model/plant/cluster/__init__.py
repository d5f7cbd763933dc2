"""Work on many bags by Dask: processes of this machine, or a running cluster."""
