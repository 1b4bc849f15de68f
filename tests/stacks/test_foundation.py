"""What the foundation exports for the cluster."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from cdk_training_cluster_file import FileSystemSettings, NetworkSettings, read_cluster_file
from cdk_training_cluster_file.model import ExistingFileSystem
from cdk_training_cluster_stacks.building import built_stacks
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from examples import PROJECT, SWEPT_EXAMPLES
from synthesis import resources, warnings


@pytest.mark.parametrize("example", SWEPT_EXAMPLES)
def test_it_exports_all_that_the_cluster_imports_even_before_it_does(example: str) -> None:
    file = read_cluster_file(PROJECT / example)
    alone = _exports(FoundationStack(App(), file.foundation_stack_name, cluster=file))
    preloaded = tuple(one.model_copy(update={"preload": True}) for one in file.datasets)
    file = file.model_copy(update={"datasets": preloaded})
    app = App()
    foundation = FoundationStack(app, file.foundation_stack_name, cluster=file)
    ClusterStack(app, file.cluster_stack_name, cluster=file, foundation=foundation)
    assert _exports(foundation) == alone
    network = 5 if file.network is None else 3
    assert len(alone) == network + 3 * (file.file_system is not None) + 2 * (file.checkpoints is not None)


def test_what_is_not_the_stack_s_own_needs_no_export() -> None:
    network = NetworkSettings(vpc_id="vpc-0a1b2c3d", subnet_id="subnet-0a1b2c3d")
    file = read_cluster_file(PROJECT / "clusters/dev-box.yaml").model_copy(update={"network": network})
    assert len(_exports(FoundationStack(App(), "foundation", cluster=file))) == 3


_NETWORK = NetworkSettings(vpc_id="vpc-0a1b2c3d", subnet_id="subnet-0a1b2c3d")


@pytest.mark.parametrize(
    ("group", "network", "rules", "warned"),
    [
        ("sg-0a1b2c3d", _NETWORK, {988, 1018}, False),
        ("sg-0a1b2c3d", None, {988, 1018}, False),
        (None, _NETWORK, set(), False),
        (None, None, set(), True),
    ],
)
def test_an_existing_file_system_gets_rules_where_its_group_is_named(
    group: str | None, network: NetworkSettings | None, rules: set[int], warned: bool
) -> None:
    existing = ExistingFileSystem(file_system_id="fs-0a1b2c3d", mount_name="abcdefgh", security_group_id=group)
    changes = {"network": network, "file_system": FileSystemSettings(existing=existing)}
    file = read_cluster_file(PROJECT / "clusters/dev-box.yaml").model_copy(update=changes)
    stack = FoundationStack(App(), "foundation", cluster=file)
    let_in = resources(stack, "AWS::EC2::SecurityGroupIngress", {"GroupId": "sg-0a1b2c3d"})
    assert {rule["Properties"]["FromPort"] for rule in let_in.values()} == rules
    assert any("existingFileSystemAccess" in warning for warning in warnings(stack)) is warned
    assert not resources(stack, "AWS::SSM::Parameter") | resources(stack, "AWS::FSx::FileSystem")


def test_an_output_names_the_security_group_of_the_nodes() -> None:
    file = read_cluster_file(PROJECT / "clusters/dev-box.yaml")
    stack = FoundationStack(App(), "foundation", cluster=file)
    group = stack.resolve(stack.network.security_group.security_group_id)
    assert Template.from_stack(stack).to_json()["Outputs"]["NodeSecurityGroupId"]["Value"] == group


def _exports(stack: FoundationStack) -> dict[str, Any]:
    outputs = Template.from_stack(stack).to_json()["Outputs"]
    return {name: output for name, output in outputs.items() if "Export" in output}


@pytest.mark.parametrize(("groups", "indented"), [(1, True), (21, False)])
def test_the_template_of_many_groups_is_written_without_indentation(groups: int, indented: bool) -> None:
    file = read_cluster_file(PROJECT / "clusters/dev-box.yaml")
    (box,) = file.node_groups
    many = tuple(box.model_copy(update={"name": f"box-{number}"}) for number in range(groups))
    with built_stacks(file.model_copy(update={"node_groups": many})) as (app, stack):
        app.synth()
        text = (Path(app.outdir) / stack.template_file).read_text(encoding="utf-8")
    assert ("\n" in text) is indented
