"""The names that a stated price may have: in a budget, `training-cluster init --price` and `plan --price`."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from functools import cache

from cdk_training_cluster.instance_types import all_instance_types, instance_type_names
from cdk_training_cluster.prices.units import UNITS
from cdk_training_cluster.validation.checks import shown

# Orchestrators run nodes of their own on types that the catalog does not have, such as m7i.large.
_TYPE = re.compile(r"(?:ml\.)?([a-z]+)\d[a-z0-9-]*\.(?:nano|micro|small|medium|\d*x?large|metal(?:-\d+xl)?)")
# The names that the spend function lists as unknown, and the same without their first word.
_RESERVATION = re.compile(r"(?:capacity-block )?cr-[0-9a-f]{8}(?:[0-9a-f]{9})?")
_INSTANCE = re.compile(r"(?:on-demand )?(\S+)|(?:spot )?(\S+) [a-z]{2}(?:-[a-z]+)+-\d+(?:-[a-z]+-\d+)?[a-z]")
_MATCHES_SHOWN = 2


@cache
def planned_names() -> frozenset[str]:
    """Return the names of units and of the catalog's types, also as SageMaker sells them: `ml.p5.48xlarge`."""
    return frozenset({*UNITS, *(listed for each in instance_type_names() for listed in (each, f"ml.{each}"))})


def is_other_type(name: str) -> bool:
    """Tell whether a name has the form of a type that the catalog need not have: one without accelerators.

    Args:
        name: The name of a price.
    """
    found = _TYPE.fullmatch(name)
    return found is not None and found[1] not in _accelerated_families()


def is_budget_name(name: str, types: Collection[str] = ()) -> bool:
    """Tell whether the spend function could look a price up under a name.

    Args:
        name: The name.
        types: Instance types that the catalog does not have. Default: - none
    """
    if name in UNITS or _RESERVATION.fullmatch(name):
        return True
    found = _INSTANCE.fullmatch(name)
    if found is None:
        return False
    instance_type = str(found[1] or found[2])
    is_known = instance_type in planned_names() or instance_type.removeprefix("ml.") in types
    return is_known or is_other_type(instance_type)


def wrong_name(name: str, *, of_budget: bool) -> str:
    """Return the sentence on a name that no price has, without the setting.

    Args:
        name: The name.
        of_budget: Whether reservations and Spot Instances have prices too, as in a budget.
    """
    near = get_close_matches(name.strip().lower(), sorted(planned_names()), n=_MATCHES_SHOWN)
    others = ", a reservation (cr-0a1b2c3d4e5f67890), a Spot price (spot p5.48xlarge us-east-1b)" if of_budget else ""
    hint = f"did you mean {' or '.join(near)}?" if near else f"the units are {', '.join(UNITS)}"
    return f"must name an instance type (p5.48xlarge or ml.p5.48xlarge){others} or a unit, got {shown(name)}: {hint}"


@cache
def _accelerated_families() -> frozenset[str]:
    return frozenset(re.split(r"\d", info.name)[0] for info in all_instance_types() if info.accelerators)
