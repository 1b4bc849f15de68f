"""The engines that run jobs on the nodes. `orchestrator` says how one is added; nothing is imported here, since the
rules about node groups read `kinds`."""
