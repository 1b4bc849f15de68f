"""Code that all constructs share: acknowledgements, conditions, encryption, retention, dashboards and state."""
