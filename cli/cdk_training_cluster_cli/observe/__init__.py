"""What the commands share that look at a deployed cluster, and those that look back: events, logs and why."""
