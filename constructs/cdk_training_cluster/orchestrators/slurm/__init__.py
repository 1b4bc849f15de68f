"""Slurm on AWS PCS: the scheduler, its queues, and the groups that it launches nodes in."""
