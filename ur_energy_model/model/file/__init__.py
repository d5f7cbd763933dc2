"""The model file: read strictly, written whole or not at all."""
