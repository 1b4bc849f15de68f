"""The commands before the first deployment: `init` and `preflight`."""
