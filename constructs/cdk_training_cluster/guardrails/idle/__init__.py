"""The guardrail that stops idle node groups."""
