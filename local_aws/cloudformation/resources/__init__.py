"""The resource types that the local AWS supports, by name; any other fails its stack."""

from collections.abc import Mapping

from local_aws.cloudformation.resources import (
    batch,
    budgets,
    compute,
    custom,
    documents,
    eks,
    functions,
    hyperpod,
    identity,
    log_delivery,
    lustre,
    messaging,
    monitoring,
    network,
    pcs,
    prometheus,
    repositories,
    reservations,
    scaling,
    security_groups,
    spot_fleets,
    storage,
    tables,
)
from local_aws.cloudformation.resources.base import Handler

_MODULES = (
    batch,
    budgets,
    compute,
    custom,
    documents,
    eks,
    functions,
    hyperpod,
    identity,
    log_delivery,
    lustre,
    messaging,
    monitoring,
    network,
    pcs,
    prometheus,
    repositories,
    reservations,
    scaling,
    security_groups,
    spot_fleets,
    storage,
    tables,
)

HANDLERS: Mapping[str, Handler] = {handler.type: handler for module in _MODULES for handler in module.HANDLERS}


def handler_of(resource_type: str) -> Handler | None:
    """Return the handler of a resource type; None: the local AWS has no such type.

    Args:
        resource_type: The type. A template gives custom resources types of its own, which begin with `Custom::`.
    """
    return HANDLERS.get(
        "AWS::CloudFormation::CustomResource" if resource_type.startswith("Custom::") else resource_type
    )
