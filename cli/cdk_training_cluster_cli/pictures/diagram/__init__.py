"""Draws the stacks of a cluster file."""
