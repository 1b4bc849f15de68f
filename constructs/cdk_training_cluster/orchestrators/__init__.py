"""What runs jobs on a cluster's nodes, and owns the nodes then."""
