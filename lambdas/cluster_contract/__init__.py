"""What the constructs and the functions of a training cluster agree on; it needs the standard library only."""
