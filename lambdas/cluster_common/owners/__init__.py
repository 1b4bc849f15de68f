"""What owns the nodes of a cluster: Auto Scaling groups and Spot Fleet requests behind one interface."""
