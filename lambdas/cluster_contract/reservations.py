"""The settings of the reservation function, which its construct writes, and its custom resource."""

from dataclasses import dataclass

from cluster_contract.codec import FunctionSettings

RESOURCE_TYPE = "Custom::CapacityReservation"
"""The type of a reservation in a template. Its properties have the names of EC2's CreateCapacityReservation."""

ON_IDLE, RELEASE = "OnIdle", "release"
"""The property that says what happens while the node group is stopped, and its value where the power function lowers
the reservation."""


@dataclass(frozen=True, kw_only=True)
class ReservationFunctionSettings(FunctionSettings):
    """The settings of the reservation function.

    Attributes:
        cluster: The cluster's name, for the function's log.
    """

    environment_variable = "CLUSTER_RESERVATIONS_SETTINGS"

    cluster: str
