"""From a wish to a bag: exciting trajectories, checked and executed."""
