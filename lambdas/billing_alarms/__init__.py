"""Creates, repairs and removes the billing alarms of one budget, in the one region that has billing metrics."""
