"""The commands for prices and costs."""
