"""`training-cluster init`: writes a commented cluster file from a few answers."""
