"""Where readings go: terminal, Foxglove, Prometheus, MQTT, OPC UA; without ROS."""
