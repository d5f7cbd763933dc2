"""The model of an arm: rigid bodies, friction, drives and supply."""
