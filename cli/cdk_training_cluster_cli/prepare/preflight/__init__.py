"""`training-cluster preflight`: asks AWS, before money is spent, whether a cluster file can be deployed."""
