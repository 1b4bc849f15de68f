"""The one function that owns the sizes of a cluster's node groups."""
