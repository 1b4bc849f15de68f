"""Stacks to deploy as they are, and the cluster file that they are made from."""
