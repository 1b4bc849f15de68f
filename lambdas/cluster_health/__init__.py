"""The function that learns of broken nodes, and repairs them within a budget."""
