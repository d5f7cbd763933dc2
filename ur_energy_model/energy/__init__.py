"""Power and energy of an arm: the calculator, live counters, recordings, plans."""
