"""What one run of the idle stop takes over a whole fleet, beside a minimal script that makes the same calls."""
