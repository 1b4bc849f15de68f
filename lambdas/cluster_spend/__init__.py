"""The function that counts a cluster's dollars as they are spent, and acts where they exceed the budget."""
