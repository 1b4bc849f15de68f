"""The guardrails for budgets, billing alarms, spend and cost reports."""
