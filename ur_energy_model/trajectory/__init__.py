"""Motions as functions of time: Fourier series, profiles, named motions, plans."""
