"""Where people look: terminal, Foxglove, Prometheus, MQTT, OPC UA; knows no ROS."""
