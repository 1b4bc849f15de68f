"""`training-cluster checkpoints`: lists checkpoints, proves that they are whole, and restores them."""
