"""What the construct puts into a template."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk.assertions import Annotations, Match, Template

from cdk_training_cluster.instance_types import instance_type_info
from cdk_training_cluster.nodes.bootstrap import (
    HARMFUL_ENVIRONMENT,
    NEEDLESS_ENVIRONMENT,
    Mount,
    NodeBootstrap,
)
from cdk_training_cluster.nodes.bootstrap.asset import sha256_of
from cdk_training_cluster.nodes.bootstrap.environment import node_environment


class _Cluster:
    """A stack with one role and a launch template that carries the user data."""

    def __init__(self, directory: Path) -> None:
        self.stack = Stack(
            App(outdir=str(directory / "cdk.out")),
            "Test",
            env=Environment(account="123456789012", region="us-east-1"),
        )
        self.role = iam.Role(self.stack, "Role", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com"))

    def bootstrap(self, id: str = "Bootstrap", **arguments: Any) -> NodeBootstrap:
        settings: dict[str, Any] = {
            "cluster_name": "llama",
            "node_group": "workers",
            "role": self.role,
            "instance_type": instance_type_info("p5.48xlarge"),
            "efa": True,
            "mount": Mount(dns_name="fs-1.fsx.us-east-1.amazonaws.com", mount_name="abcdev"),
        }
        bootstrap = NodeBootstrap(self.stack, id, **{**settings, **arguments})
        ec2.LaunchTemplate(self.stack, f"{id}Template", user_data=bootstrap.user_data)
        return bootstrap

    def template(self) -> Template:
        return Template.from_stack(self.stack)

    def user_data(self) -> str:
        [resource] = self.template().find_resources("AWS::EC2::LaunchTemplate").values()
        value = resource["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]
        if isinstance(value, str):
            return value
        return "".join(
            part if isinstance(part, str) else f"<{next(iter(part.values()))}>" for part in value["Fn::Join"][1]
        )

    def statements(self) -> list[dict[str, Any]]:
        [policy] = self.template().find_resources("AWS::IAM::Policy").values()
        statements: list[dict[str, Any]] = policy["Properties"]["PolicyDocument"]["Statement"]
        return statements


@pytest.fixture
def cluster(tmp_path: Path) -> _Cluster:
    return _Cluster(tmp_path)


def test_the_settings_travel_in_a_short_user_data(cluster: _Cluster) -> None:
    cluster.bootstrap()
    text = cluster.user_data()
    assert len(text.encode()) < 2_048
    for line in (
        "CLUSTER='llama'",
        "NODE_GROUP='workers'",
        "REGION='<AWS::Region>'",
        "EFA='yes'",
        "MOUNT_SOURCE='fs-1.fsx.us-east-1.amazonaws.com@tcp:/abcdev'",
        "MOUNT_POINT='/fsx'",
        "METRIC_NAMESPACE='CdkTrainingCluster/Nodes/llama'",
        "ENVIRONMENT=('NCCL_SOCKET_IFNAME=^docker,lo,veth,ecs')",
        "SCRIPTS_BEFORE=()",
    ):
        assert f"\n{line}\n" in text


def test_values_that_only_a_deployment_knows_are_references(cluster: _Cluster) -> None:
    name = CfnParameter(cluster.stack, "DnsName").value_as_string
    cluster.bootstrap(
        mount=Mount(dns_name=name, mount_name=name, mount_point=name), environment={"FILE_SYSTEM": name}
    )
    text = cluster.user_data()
    assert "MOUNT_SOURCE='<DnsName>@tcp:/<DnsName>'\nMOUNT_POINT='<DnsName>'\n" in text
    assert "'FILE_SYSTEM=<DnsName>'" in text


def test_a_node_without_efa_and_file_system_says_nothing_of_them(cluster: _Cluster) -> None:
    cluster.bootstrap(efa=False, mount=None)
    assert "\nEFA=''\nMOUNT_SOURCE=''\nMOUNT_POINT=''\n" in cluster.user_data()


def test_the_role_may_read_these_assets_and_write_these_metrics_and_nothing_else(
    cluster: _Cluster, tmp_path: Path
) -> None:
    (tmp_path / "setup.sh").write_text("true\n")
    cluster.bootstrap(scripts_before=[str(tmp_path / "setup.sh")])
    [read, write] = cluster.statements()
    assert read["Action"] == "s3:GetObject"
    assert len(read["Resource"]) == 2
    assert all("*" not in json.dumps(resource) for resource in read["Resource"])
    assert write == {
        "Action": "cloudwatch:PutMetricData",
        "Condition": {
            "StringEquals": {
                "cloudwatch:namespace": "CdkTrainingCluster/Nodes/llama",
                "aws:RequestedRegion": {"Ref": "AWS::Region"},
            }
        },
        "Effect": "Allow",
        "Resource": "*",
    }


def test_a_hook_s_name_is_a_setting_of_its_nodes_and_may_be_known_at_deployment_only(tmp_path: Path) -> None:
    for hook in ("ready", None, "token"):
        cluster = _Cluster(tmp_path / str(hook))
        name = CfnParameter(cluster.stack, "Hook").value_as_string
        cluster.bootstrap(launch_hook=name if hook == "token" else hook)
        assert f"\nLAUNCH_HOOK='{'<Hook>' if hook == 'token' else hook or ''}'\n" in cluster.user_data()


def test_with_a_hook_the_role_may_complete_actions_of_its_cluster_s_groups(cluster: _Cluster) -> None:
    for group in ("workers", "extras"):
        NodeBootstrap(
            cluster.stack,
            group,
            cluster_name="llama",
            node_group=group,
            role=cluster.role,
            instance_type=instance_type_info("p5.48xlarge"),
            launch_hook="ready",
        )
    statements = [one for one in cluster.statements() if "autoscaling:" in str(one["Action"])]
    assert statements == [
        {
            "Action": "autoscaling:DescribeAutoScalingInstances",
            "Condition": {"StringEquals": {"aws:RequestedRegion": {"Ref": "AWS::Region"}}},
            "Effect": "Allow",
            "Resource": "*",
        },
        {
            "Action": "autoscaling:CompleteLifecycleAction",
            "Condition": {"StringEquals": {"aws:ResourceTag/cdk-training-cluster:cluster": "llama"}},
            "Effect": "Allow",
            "Resource": {
                "Fn::Join": [
                    "",
                    [
                        "arn:",
                        {"Ref": "AWS::Partition"},
                        ":autoscaling:",
                        {"Ref": "AWS::Region"},
                        ":",
                        {"Ref": "AWS::AccountId"},
                        ":autoScalingGroup:*:autoScalingGroupName/*",
                    ],
                ]
            },
        },
    ]


def test_user_scripts_are_assets_of_their_own_in_their_order(cluster: _Cluster, tmp_path: Path) -> None:
    for name in ("b.sh", "a script.sh", "it's.py"):
        (tmp_path / name).write_text(f"# {name}\n")
    cluster.bootstrap(
        scripts_before=[str(tmp_path / "b.sh"), str(tmp_path / "a script.sh")],
        scripts_after=[str(tmp_path / "it's.py")],
    )
    lines = {line.split("=")[0]: line for line in cluster.user_data().splitlines() if line.startswith("SCRIPTS_")}
    assert [part.split(" ", 1)[1] for part in lines["SCRIPTS_BEFORE"][16:-2].split("' 's3")] == [
        f"{sha256_of(tmp_path / name)} {name}" for name in ("b.sh", "a script.sh")
    ]
    after = sha256_of(tmp_path / "it's.py")
    assert lines["SCRIPTS_AFTER"].endswith(f" {after} it'\\''s.py')")


def _asset_keys(directory: Path, *types: str, cluster_name: str = "llama") -> list[str]:
    cluster = _Cluster(directory)
    for number, name in enumerate(types):
        cluster.bootstrap(f"Bootstrap{number}", instance_type=instance_type_info(name), cluster_name=cluster_name)
    cluster.template()
    manifest = json.loads((directory / "cdk.out/Test.assets.json").read_text())
    return sorted(key for key, asset in manifest["files"].items() if asset["source"]["path"].endswith(".zip"))


def test_clusters_and_groups_with_the_same_accelerator_share_one_asset(tmp_path: Path) -> None:
    first = _asset_keys(tmp_path / "first", "p5.48xlarge", "g5.xlarge")
    assert len(first) == 1
    assert _asset_keys(tmp_path / "second", "p4d.24xlarge", cluster_name="other") == first
    assert _asset_keys(tmp_path / "third", "trn1.32xlarge") != first
    # Every chip of a Neuron node has to be seen.
    assert len({*_asset_keys(tmp_path / "fourth", "trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge")}) == 2


@pytest.mark.parametrize(
    ("name", "value", "warning"),
    [
        ("RDMAV_FORK_SAFE", "1", HARMFUL_ENVIRONMENT),
        ("NCCL_PROTO", "simple", HARMFUL_ENVIRONMENT),
        ("NCCL_PROTO", "Simple", HARMFUL_ENVIRONMENT),
        ("FI_EFA_FORK_SAFE", "1", HARMFUL_ENVIRONMENT),
        ("FI_EFA_ENABLE_SHM_TRANSFER", "0", HARMFUL_ENVIRONMENT),
        ("NCCL_BUFFSIZE", "8388608", HARMFUL_ENVIRONMENT),
        ("FI_PROVIDER", "efa", NEEDLESS_ENVIRONMENT),
        ("FI_EFA_USE_DEVICE_RDMA", "1", NEEDLESS_ENVIRONMENT),
    ],
)
def test_variables_that_do_no_good_are_warned_about(cluster: _Cluster, name: str, value: str, warning: str) -> None:
    cluster.bootstrap(environment={name: value})
    Annotations.from_stack(cluster.stack).has_warning(
        "/Test/Bootstrap",
        Match.string_like_regexp(rf"environment sets {name}={value}: .* \[ack: {warning}\]"),
    )


@pytest.mark.parametrize(
    "environment",
    [
        {"NCCL_PROTO": "LL128"},
        {"FI_PROVIDER": "tcp"},
        {"FI_EFA_USE_HUGE_PAGE": "0"},
        {"NCCL_DEBUG": "INFO"},
        {},
    ],
)
def test_other_variables_are_left_alone(cluster: _Cluster, environment: dict[str, str]) -> None:
    cluster.bootstrap(environment=environment)
    assert Annotations.from_stack(cluster.stack).find_warning("*", Match.any_value()) == []


@pytest.mark.parametrize("interface", ["lo", "docker0", "veth1a2b3c", "ecs-eth0"])
def test_nccl_takes_no_interface_that_leads_to_no_other_node(interface: str) -> None:
    excluded = node_environment({})["NCCL_SOCKET_IFNAME"].removeprefix("^").split(",")
    assert interface.startswith(tuple(excluded))


def test_the_user_s_value_wins_over_the_default_and_the_order_is_by_name(cluster: _Cluster) -> None:
    cluster.bootstrap(environment={"Z": "1", "NCCL_SOCKET_IFNAME": "en", "A": "2"})
    assert "ENVIRONMENT=('A=2' 'NCCL_SOCKET_IFNAME=en' 'Z=1')\n" in cluster.user_data()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"environment": {"NOT-A-NAME": "1"}},
            "environment names must be letters, digits and underscores and not start with a digit, got 'NOT-A-NAME'",
        ),
        (
            {"environment": {"A": "two\nlines"}},
            "environment value of A must be a single line of text, got 'two\\nlines'",
        ),
        (
            {"cluster_name": "a,b"},
            "cluster_name must be letters, digits, '.', '_' and '-' and start with a letter or digit, got 'a,b'",
        ),
        (
            {"node_group": "a'b"},
            "node_group must be letters, digits, '.', '_' and '-' and start with a letter or digit, got \"a'b\"",
        ),
        (
            {"launch_hook": "is it ready?"},
            "launch_hook must be a lifecycle hook's name of 1 to 255 letters, digits, '-', '_' and '/', got "
            "'is it ready?'",
        ),
        (
            {"launch_hook": ""},
            "launch_hook must be a lifecycle hook's name of 1 to 255 letters, digits, '-', '_' and '/', got ''",
        ),
        (
            {"scripts_before": ["/no/such.sh"], "scripts_after": "setup.sh"},
            "scripts_before must name files that exist, got '/no/such.sh'\n"
            "scripts_after must be a list of files, got 'setup.sh'",
        ),
    ],
)
def test_what_cannot_work_is_refused_in_a_sentence(
    cluster: _Cluster, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match="must") as raised:
        cluster.bootstrap(**arguments)
    assert str(raised.value) == message


@pytest.mark.parametrize(
    "mount_point",
    [
        *("/bin", "/boot", "/dev/shm", "/etc", "/lib64", "/opt", "/proc"),
        *("/root", "/run", "/sbin", "/sys", "/tmp", "/usr/local", "/var"),
    ],
)
def test_a_mount_point_that_would_hide_the_operating_system_is_refused(mount_point: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        Mount(dns_name="a", mount_name="b", mount_point=mount_point)
    assert str(refused.value) == (
        f"mount_point must not be a directory of the operating system, got {mount_point!r}: the file system would "
        "hide what is in it; give a directory of its own, such as /fsx"
    )


@pytest.mark.parametrize("mount_point", ["/fsx", "/mnt/etc", "/home", "/opt/ml", "/variable", "/library"])
def test_other_directories_may_be_mount_points(mount_point: str) -> None:
    Mount(dns_name="a", mount_name="b", mount_point=mount_point)


@pytest.mark.parametrize("mount_point", ["/", "fsx", "/fsx/", "/a b", "/a//b", "/../x", ""])
def test_a_mount_point_that_cannot_stand_in_fstab_is_refused(mount_point: str) -> None:
    with pytest.raises(ValueError, match=r"^mount_point must be an absolute path below / of"):
        Mount(dns_name="a", mount_name="b", mount_point=mount_point)
