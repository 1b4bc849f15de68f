"""The commands that check a cluster file and generate files from it."""
