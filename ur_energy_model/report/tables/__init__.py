"""Tables as plain descriptions."""
