"""Sparkplug B edge node on MQTT, with plain JSON topics as an option."""
