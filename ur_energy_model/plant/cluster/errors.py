"""The error of a cluster."""

from __future__ import annotations

from ur_energy_model.errors import InputError


class ClusterError(InputError):
    """A Dask cluster that cannot be used; `source` is the address of its scheduler."""
