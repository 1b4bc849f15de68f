"""How the library's Lambda functions are packaged, set up, called and watched."""

from cdk_training_cluster.functions.alert_topic import forward_alarms, make_alert_topic
from cdk_training_cluster.functions.assets import FunctionSource, function_source
from cdk_training_cluster.functions.cluster_function import ClusterFunction
from cdk_training_cluster.functions.guardrail import (
    FunctionArguments,
    Guardrail,
    GuardrailArguments,
    GuardrailSpec,
    Silence,
    Watch,
)
from cdk_training_cluster.functions.owned_group import OwnedGroup
from cdk_training_cluster.functions.owner_permissions import OWNER_ACTIONS, OwnerPermissions
from cdk_training_cluster.functions.permissions import (
    AUTO_SCALING_GROUPS,
    INSTANCES,
    RESERVATIONS,
    SPOT_FLEETS,
    ClusterPermissions,
)
from cdk_training_cluster.functions.powertools import POWERTOOLS_VERSION, powertools_layer
from cdk_training_cluster.functions.tick import TICK, make_tick

__all__ = [
    "AUTO_SCALING_GROUPS",
    "INSTANCES",
    "OWNER_ACTIONS",
    "POWERTOOLS_VERSION",
    "RESERVATIONS",
    "SPOT_FLEETS",
    "TICK",
    "ClusterFunction",
    "ClusterPermissions",
    "FunctionArguments",
    "FunctionSource",
    "Guardrail",
    "GuardrailArguments",
    "GuardrailSpec",
    "OwnedGroup",
    "OwnerPermissions",
    "Silence",
    "Watch",
    "forward_alarms",
    "function_source",
    "make_alert_topic",
    "make_tick",
    "powertools_layer",
]
