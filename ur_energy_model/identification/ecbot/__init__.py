"""The library of Heredia et al. (EcBot): dynamic model per joint and free power model."""
