"""The program `cluster-node`, which the bootstrap installs on nodes.

It runs with the system's Python (3.9 or newer) and its standard library. Of the library around it, it imports the
modules of `cluster_contract` that the asset of the node's scripts carries.
"""
