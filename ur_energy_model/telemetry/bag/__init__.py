"""Bags: rosbag2 directories with MCAP storage, written, read and repaired."""
