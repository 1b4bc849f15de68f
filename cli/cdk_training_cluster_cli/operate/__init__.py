"""The commands that act on a deployed cluster: sizes through the power function, nodes through Systems Manager."""
