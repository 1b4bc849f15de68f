"""The function that reports how long accelerators have worked without a new checkpoint."""
