"""The training cluster: its parts, checks and outputs, and the interface of orchestrators."""
