"""The `training-cluster` command."""
