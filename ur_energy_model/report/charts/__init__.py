"""Charts as plain descriptions, made from recordings and models."""
