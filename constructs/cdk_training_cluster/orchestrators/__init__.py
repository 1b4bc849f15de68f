"""The orchestrators that run jobs on the nodes; `orchestrator` says how one is added.

Each package has the settings of one orchestrator, and adds its rules about templates to all others. Its construct is
imported when it is asked for.
"""
