"""What the local AWS adds to moto, one module a service: state that moto lacks, and AWS's refusals.

Functions that take a `response` become actions of moto's response classes; `install.py` says which replaces
what, and why.
"""
