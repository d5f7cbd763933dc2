"""The one calculator of power and energy, and what drives it: live counters, recordings, plans."""
