"""Prices that AWS is asked for with the user's credentials, and the file that keeps them."""
