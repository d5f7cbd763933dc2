"""The model that follows the arm: learned while the arm does its ordinary work."""
