"""The function that misses new checkpoints while accelerators work."""
