"""The commands that show pictures."""
