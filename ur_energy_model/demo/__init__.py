"""The whole way once, with a simulated arm."""
