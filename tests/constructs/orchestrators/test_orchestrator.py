"""What an orchestrator that runs jobs is asked for, and when."""

import inspect
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import get_type_hints

import pytest
from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Template

import cdk_training_cluster
from cdk_training_cluster import NodeFleet, NodeGroup, TrainingCluster
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator, Output
from cdk_training_cluster.core.dashboards.rows import DashboardRow
from cdk_training_cluster.nodes.fleet import Fleet
from cdk_training_cluster.nodes.fleet_owners import MadeOwner
from cdk_training_cluster.nodes.launch_dialect import BATCH, LaunchTemplateDialect
from cdk_training_cluster.nodes.node_role import make_node_role
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.owners import Launch
from cdk_training_cluster.nodes.reserved import Reserved
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.validation.rule import Problem
from synthesis import ZONE, new_stack

_GROUPS = [NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)]


class _Orchestrator(Orchestrator):
    """An orchestrator that says what it was asked."""

    def __init__(self, refused: str = "") -> None:
        self.calls: list[str] = []
        self._refused = refused

    @property
    def kind(self) -> OrchestratorKind:
        return OrchestratorKind.BATCH

    def problems(self, together: ClusterContext) -> Iterator[Problem]:
        if self._refused:
            given = f"{self._refused} with {together.orchestrator.value}"
            yield Problem(setting=("batch", "priority"), message=given, rule="example")

    def warnings(self, together: ClusterContext) -> Iterator[Problem]:  # noqa: ARG002
        yield Problem(setting=("batch",), message="it surprises", rule="exampleWarning")

    def make_role(self, base: ClusterBase) -> iam.Role:
        return make_node_role(
            base.scope, path="/orchestrator/", services=["ec2.amazonaws.com", "batch.amazonaws.com"]
        )

    def make_control(self, base: ClusterBase, shared: SharedParts, together: ClusterContext) -> None:  # noqa: ARG002
        self.calls.append(f"control of {base.cluster_name} with {len(together.nodes)} group")

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect:  # noqa: ARG002
        return BATCH

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:  # noqa: ARG002
        self.calls.append(f"owner of {fleet.node_group.name} from {len(launches)} template")
        return MadeOwner(resource=CfnResource(fleet, "Environment", type="AWS::Example::Environment"))

    def make_rest(self, base: ClusterBase, shared: SharedParts, fleets: Mapping[str, NodeFleet]) -> None:  # noqa: ARG002
        self.calls.append(f"rest after {fleets['workers'].owner.node.id}")

    def rows(self) -> Sequence[DashboardRow]:
        return [DashboardRow(title="Jobs of the orchestrator", panels=[])]

    def outputs(self, cluster_name: str) -> Iterator[Output]:
        yield Output(name="QueueOfTheOrchestrator", value=cluster_name, description="Where jobs go")


def test_an_orchestrator_makes_control_owners_and_rest_in_this_order() -> None:
    stack, orchestrator = new_stack(), _Orchestrator()
    cluster = TrainingCluster(
        stack, "Pod", cluster_name="pod", node_groups=_GROUPS, availability_zone=ZONE, _orchestrator=orchestrator
    )
    cluster.make_outputs()
    assert orchestrator.calls == [
        "control of pod with 1 group",
        "owner of workers from 1 template",
        "rest after Environment",
    ]
    template = Template.from_stack(stack).to_json()
    assert template["Outputs"]["QueueOfTheOrchestrator"]["Value"] == "pod"
    assert "Jobs of the orchestrator" in str(template)
    roles = [each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    assert any(each.get("Path") == "/orchestrator/" for each in roles)
    owner = next(each for each in template["Resources"].values() if each["Type"].startswith("AWS::Example::"))
    assert any("NAT" in name or "Route" in name for name in owner["DependsOn"])
    assert any("it surprises" in entry.data for entry in cluster.node.metadata if isinstance(entry.data, str))


def test_what_an_orchestrator_refuses_is_refused_before_anything_is_made() -> None:
    stack = new_stack()
    with pytest.raises(ValueError, match=r"^priority must be above 0 with AWS Batch$"):
        TrainingCluster(
            stack,
            "Pod",
            node_groups=_GROUPS,
            availability_zone=ZONE,
            _orchestrator=_Orchestrator(refused="priority must be above 0"),
        )


def test_clusters_of_all_orchestrators_take_the_arguments_of_a_training_cluster() -> None:
    signature = inspect.signature(TrainingCluster.__init__).parameters.values()
    own = {"self", "scope", "id", "_orchestrator"}
    assert get_type_hints(TrainingClusterArguments, include_extras=False) == {
        each.name: get_type_hints(TrainingCluster.__init__)[each.name] for each in signature if each.name not in own
    }
    assert TrainingClusterArguments.__required_keys__ == {
        each.name for each in signature if each.default is each.empty and each.name not in own
    }


def test_the_constructs_of_orchestrators_are_imported_when_they_are_asked_for() -> None:
    prints = (
        "import sys, cdk_training_cluster as library; print(*sys.modules); library.SlurmCluster; print(*sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", prints], capture_output=True, text=True, check=True)
    modules = {f"aws_cdk.aws_{name}" for name in ("batch", "eks_v2", "pcs", "sagemaker")}
    before, after = (modules.intersection(line.split()) for line in run.stdout.splitlines())
    assert (before, after) == (set(), {"aws_cdk.aws_pcs"})


def test_every_public_name_is_shown_and_no_other_is_found() -> None:
    assert set(cdk_training_cluster.__all__) <= set(dir(cdk_training_cluster))
    with pytest.raises(AttributeError, match=r"'cdk_training_cluster' has no attribute 'SlurmClustr'"):
        _ = cdk_training_cluster.SlurmClustr  # type: ignore[attr-defined]
