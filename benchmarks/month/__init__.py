"""A month of 1,024 GPUs with published failure rates: how much of it is training, and what the rest costs.

`python -m benchmarks.month` prints the tables of docs/resilience/month.md. The health function's own decisions run in
it; every other figure is published, measured by this project, or a parameter that is named here.
"""
