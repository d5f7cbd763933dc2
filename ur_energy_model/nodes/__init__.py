"""The ROS 2 nodes; only this room knows ROS."""

import os

# A node's matrices are small, and threads of OpenBLAS only get in each other's way; this must be
# set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
