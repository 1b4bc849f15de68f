"""What EKS of the local AWS keeps, and how it answers."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.iam.models import iam_backends

from local_aws.refusal import Refusal
from local_aws.services.eks_rules import INVALID, MISSING

Record = dict[str, Any]


@dataclass
class EksCluster:
    """A cluster and what is in it, as EKS describes each."""

    described: Record
    nodegroups: dict[str, Record] = field(default_factory=dict)
    addons: dict[str, Record] = field(default_factory=dict)
    entries: dict[str, Record] = field(default_factory=dict)
    associations: dict[str, Record] = field(default_factory=dict)


def params_of(response: Any) -> Record:
    """Return what a request says, in its path and in its body."""
    names = ("name", "nodegroupName", "addonName", "principalArn", "associationId")
    said = {name: response._get_param(name) for name in names}
    body: Record = json.loads(response.body) if response.body else {}
    return {**{name: value for name, value in said.items() if value is not None}, **body}


def clusters_of(response: Any) -> dict[str, EksCluster]:
    """Return the clusters of the account and Region, by their names."""
    found: dict[str, EksCluster] = vars(response.eks_backend).setdefault("kept_clusters", {})
    return found


def cluster_of(response: Any) -> EksCluster:
    """Return the cluster that a request names.

    Raises:
        Refusal: There is none of the name.
    """
    name = response._get_param("name")
    if name not in clusters_of(response):
        raise Refusal(MISSING, f"No cluster found for name: {name}.")
    return clusters_of(response)[name]


def found_in(things: Mapping[str, Record], name: str, message: str) -> Record:
    """Return one of several things.

    Raises:
        Refusal: There is none of the name.
    """
    if name not in things:
        raise Refusal(MISSING, message)
    return things[name]


def check_role(response: Any, arn: str, message: str = "Role with arn: {}, could not be assumed") -> None:
    """Refuse a role that does not exist."""
    backend = iam_backends[response.current_account][response.partition]
    if ":role/" in arn and all(role.arn != arn for role in backend.roles.values()):
        raise Refusal(INVALID, message.format(arn))


def arn_of(response: Any, path: str) -> str:
    """Return the ARN of a thing that EKS has."""
    return f"arn:{response.partition}:eks:{response.region}:{response.current_account}:{path}"


def time_now() -> datetime:
    """Return the time of the answer."""
    return datetime.now(UTC)


def answer(name: str, value: Any) -> ActionResult:
    """Answer with one thing."""
    return ActionResult({name: value})


def update_of(kind: str) -> ActionResult:
    """Answer with an update that has ended."""
    update = {"id": str(uuid.uuid4()), "status": "Successful", "type": kind, "createdAt": time_now(), "errors": []}
    return answer("update", update)
