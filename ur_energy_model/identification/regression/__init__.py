"""Filters, Gram matrices and least squares."""
