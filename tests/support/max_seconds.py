"""How long a process that a test starts may take before it counts as hung, however busy the machine is."""

MAX_SECONDS = 1800
