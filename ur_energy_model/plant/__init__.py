# Copyright 2026 ur_energy_model maintainers
# SPDX-License-Identifier: Apache-2.0

"""Many arms over months: history in Parquet, questions in DuckDB, work on many cores with Dask."""
