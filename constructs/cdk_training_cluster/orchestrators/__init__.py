"""The engines that run jobs on the nodes; `orchestrator` says how one is added.

Each engine's package has its settings, and adds its rules about templates to all others. Its construct is imported
when it is asked for.
"""
