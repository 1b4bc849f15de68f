"""The function that sends a report of what a cluster has cost, once a week."""
