"""Adapters of owners on botocore clients whose requests and answers are checked against botocore's models."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

import boto3
from botocore.stub import Stubber

from cluster_common.clients import Clients
from cluster_common.owners.making import make_owners
from cluster_common.owners.node_owner import NodeOwner
from cluster_contract.owners import OwnedGroupSettings, OwnerKind, OwnerSettings

NOW = datetime(2026, 11, 2, 8, tzinfo=UTC)
CLUSTER = "base-pod"
TAGS = {"cdk-training-cluster:cluster": CLUSTER, "cdk-training-cluster:node-group": "workers"}
KEYED = [{"Key": key, "Value": value} for key, value in TAGS.items()]

Answer = Mapping[str, Any] | str


@dataclass
class StubbedAws:
    """AWS with one answer for each call, in order; an answer that is a text is the code of an error."""

    stubs: dict[str, Stubber] = field(default_factory=dict)

    def client(self, service: str) -> Any:
        """Return the client of a service."""
        if service not in self.stubs:
            session: Any = boto3.Session("x", "x", region_name="us-east-1")
            client = session.client(service)
            self.stubs[service] = Stubber(client)
            self.stubs[service].activate()
        return self.stubs[service].client

    def expect(self, call: str, request: Mapping[str, Any], answer: Answer) -> None:
        """Expect a call, such as `pcs.get_compute_node_group`, next."""
        service, _, operation = call.partition(".")
        self.client(service)
        if isinstance(answer, str):
            code, _, message = answer.partition(": ")
            self.stubs[service].add_client_error(operation, code, message, expected_params=dict(request))
        else:
            self.stubs[service].add_response(operation, dict(answer), dict(request))

    def owner(self, kind: OwnerKind, id: str, **settings: Any) -> NodeOwner:
        """Return the adapter of one owner, of the node group `workers` of 8 nodes."""
        owner = OwnerSettings(kind=kind, id=id, **settings)

        def maker(service: str) -> Callable[[], Any]:
            return cache(lambda: self.client(service))

        clients = Clients(
            auto_scaling=maker("autoscaling"),
            auto_scaling_once=maker("autoscaling"),
            batch=maker("batch"),
            ec2=maker("ec2"),
            eks=maker("eks"),
            pcs=maker("pcs"),
            sagemaker=maker("sagemaker"),
        )
        groups = {"workers": OwnedGroupSettings(owner=owner)}
        [found] = make_owners(groups, clients, CLUSTER, NOW, stack_id="", counts={"workers": 8})
        return found

    def check(self) -> None:
        """Check that every call was made."""
        for stub in self.stubs.values():
            stub.assert_no_pending_responses()
