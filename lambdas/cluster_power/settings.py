"""The power function's settings, under the names that its modules use."""

from cluster_contract.power import PowerFunctionSettings as Settings
from cluster_contract.power import PowerGroupSettings as GroupSettings

__all__ = ["GroupSettings", "Settings"]
