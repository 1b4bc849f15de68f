"""`training-cluster status`: how far the data sets are, and when the last checkpoint was written."""
