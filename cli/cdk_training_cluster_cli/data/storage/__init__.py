"""`training-cluster storage`: which file system meets a need, and what it costs."""
