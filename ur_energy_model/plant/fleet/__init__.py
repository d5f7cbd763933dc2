"""Models of the arms of a fleet, and what they share."""
