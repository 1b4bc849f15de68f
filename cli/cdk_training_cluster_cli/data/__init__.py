"""The commands for data: data sets, checkpoints and file systems."""
