"""A harness of faults: `make torture`, or `python -m test.torture`."""
