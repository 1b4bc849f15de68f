"""The function that finds idle accelerated instances, warns, and has them stopped."""
