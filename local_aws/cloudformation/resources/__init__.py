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
