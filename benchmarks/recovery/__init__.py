"""What `make bench-recovery` measures: what a lost node costs a job, and what a checkpoint does."""
