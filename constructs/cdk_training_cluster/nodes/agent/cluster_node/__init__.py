"""The program `cluster-node`, which the bootstrap installs on nodes that mount the file system.

It runs with the system's Python (3.9 or newer) and its standard library, and imports nothing of the library around
it.
"""
