"""Drives a recorded run again with what was recorded, and says where it would differ today."""
