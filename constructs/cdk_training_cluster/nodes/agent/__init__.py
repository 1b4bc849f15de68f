"""What runs on the nodes beside training: the program `cluster-node`."""
