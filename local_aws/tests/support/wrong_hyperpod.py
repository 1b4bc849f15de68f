"""HyperPod templates that a linter passes and SageMaker refuses: with its reason."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from local_aws_scene import Template

Properties = dict[str, Any]

_ROLE = {"Fn::GetAtt": ["HyperPodRole", "Arn"]}
EKS_NAME, EKS_GROUP = "training", "sg-0e4501a2b3c4d5e6f"
_EKS = {"Eks": {"ClusterArn": f"arn:aws:eks:us-east-1:123456789012:cluster/{EKS_NAME}"}}
_FILES = {"FsxLustreConfig": {"DnsName": "fs-0a1b2c3d4e5f67890.fsx.us-east-1.amazonaws.com", "MountName": "abcdefgh"}}


def _group(name: str, kind: str, count: int, slurm: dict[str, Any], **more: Any) -> dict[str, Any]:
    settings = {"InstanceGroupName": name, "InstanceType": kind, "InstanceCount": count, "ExecutionRole": _ROLE}
    return {**settings, "SlurmConfig": slurm, **more}


def hyperpod_template() -> Template:
    """Return a template with a legal HyperPod cluster on Slurm."""
    workers = _group(
        *("workers", "ml.p5.48xlarge", 3),
        {"NodeType": "Compute", "PartitionNames": ["train"]},
        LifeCycleConfig={"SourceS3Uri": "s3://scripts/hyperpod/", "OnInitComplete": "set_up.sh"},
        InstanceStorageConfigs=[_FILES],
    )
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "sagemaker.amazonaws.com"}}
    network = {
        "SecurityGroupIds": [{"Fn::ImportValue": "test-Group"}],
        "Subnets": [{"Fn::ImportValue": "test-Subnet"}],
    }
    return {
        "Resources": {
            "HyperPodRole": {
                "Type": "AWS::IAM::Role",
                "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}},
            },
            "HyperPod": {
                "Type": "AWS::SageMaker::Cluster",
                "Properties": {
                    "ClusterName": "llama",
                    "NodeProvisioningMode": "Continuous",
                    "VpcConfig": network,
                    "InstanceGroups": [_group("controller", "ml.m5.xlarge", 1, {"NodeType": "Controller"}), workers],
                    "Tags": [{"Key": "cdk-training-cluster:cluster", "Value": "llama"}],
                },
            },
        }
    }


@dataclass(frozen=True)
class Wrong:
    """A wrong template.

    Attributes:
        name: What is wrong.
        change: Makes the properties of a legal cluster wrong.
        refusal: What SageMaker says.
    """

    name: str
    change: Callable[[Properties], object]
    refusal: str


def _cluster(**properties: Any) -> Callable[[Properties], object]:
    return lambda cluster: cluster.update(properties)


def _workers(**settings: Any) -> Callable[[Properties], object]:
    return lambda cluster: cluster["InstanceGroups"][1].update(settings)


def _more(*groups: dict[str, Any]) -> Callable[[Properties], object]:
    return lambda cluster: cluster["InstanceGroups"].extend(groups)


def _on_eks(**settings: Any) -> Callable[[Properties], object]:
    """Leave the workers alone on EKS, and change them."""

    def change(cluster: Properties) -> None:
        workers = {**cluster["InstanceGroups"][1], **settings}
        del workers["InstanceStorageConfigs"]
        kept = {key: value for key, value in workers.items() if value is not None}
        network = cluster["VpcConfig"]
        network = {**network, "SecurityGroupIds": [*network["SecurityGroupIds"], EKS_GROUP]}
        cluster.update(Orchestrator=_EKS, InstanceGroups=[kept], VpcConfig=network)

    return change


_ROOT = {"RootVolume": True, "VolumeKmsKeyId": "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d"}
_CONTROLLER = {"NodeType": "Controller"}
_LOGIN = {"NodeType": "Login"}
_SCRIPT = {"SourceS3Uri": "s3://scripts/hyperpod/", "OnCreate": "set_up.sh"}


def eks_template() -> Template:
    """Return a template with a legal HyperPod cluster on EKS."""
    template = hyperpod_template()
    _on_eks(SlurmConfig=None, LifeCycleConfig=_SCRIPT)(template["Resources"]["HyperPod"]["Properties"])
    return template


def governed_template(weight: int = 10) -> Template:
    """Return a template with a legal HyperPod cluster on EKS and the policy of its task governance.

    Args:
        weight: The weight of its one class of priority. Default: - 10.
    """
    template = eks_template()
    policy = {
        "Name": "llama",
        "ClusterArn": {"Ref": "HyperPod"},
        "SchedulerConfig": {"PriorityClasses": [{"Name": "training", "Weight": weight}], "FairShare": "Enabled"},
    }
    template["Resources"]["Policy"] = {"Type": "AWS::SageMaker::ClusterSchedulerConfig", "Properties": policy}
    return template


WRONG = (
    Wrong(
        "no controller",
        lambda cluster: cluster["InstanceGroups"].pop(0),
        "Exactly one instance group must have the Slurm node type Controller, found 0",
    ),
    Wrong(
        "two controllers",
        _more(_group("second", "ml.m5.xlarge", 1, _CONTROLLER)),
        "Exactly one instance group must have the Slurm node type Controller, found 2",
    ),
    Wrong(
        "two login groups",
        _more(_group("one", "ml.m5.xlarge", 1, _LOGIN), _group("two", "ml.m5.xlarge", 1, _LOGIN)),
        "At most one instance group can have the Slurm node type Login, found 2",
    ),
    Wrong(
        "a compute group without a partition",
        _workers(SlurmConfig={"NodeType": "Compute"}),
        "PartitionNames is required for Compute",
    ),
    Wrong(
        "a login group with a partition",
        _more(_group("login", "ml.m5.xlarge", 1, {**_LOGIN, "PartitionNames": ["train"]})),
        "not allowed for other node types, got Login",
    ),
    Wrong(
        "a strategy beside continuous provisioning",
        _cluster(Orchestrator={"Slurm": {"SlurmConfigStrategy": "Managed"}}),
        "SlurmConfigStrategy is not supported when NodeProvisioningMode is Continuous",
    ),
    Wrong(
        "two life cycles",
        _workers(LifeCycleConfig={**_SCRIPT, "OnInitComplete": "set_up.sh"}),
        "OnCreate and OnInitComplete are mutually exclusive",
    ),
    Wrong(
        "a life cycle without a place",
        _workers(LifeCycleConfig={"OnInitComplete": "set_up.sh"}),
        "SourceS3Uri is required in LifeCycleConfig",
    ),
    Wrong(
        "an extension on EKS",
        _on_eks(SlurmConfig=None),
        "LifeCycleConfig with OnCreate is required for instance group workers with Amazon EKS",
    ),
    Wrong(
        "Slurm's node types on EKS",
        _on_eks(LifeCycleConfig=_SCRIPT),
        "SlurmConfig of instance group workers is not allowed with Amazon EKS",
    ),
    Wrong(
        "a file system without a network",
        lambda cluster: cluster.pop("VpcConfig"),
        "VpcConfig is required when FsxLustreConfig is specified",
    ),
    Wrong(
        "a type that SageMaker does not have",
        _workers(InstanceType="ml.p5.16xlarge"),
        "Value 'ml.p5.16xlarge' at 'instanceGroups.2.member.",
    ),
    Wrong(
        "a minimum above the count",
        _workers(MinInstanceCount=4),
        "MinInstanceCount 4 must not be greater than InstanceCount 3",
    ),
    Wrong(
        "one name twice",
        _more(_group("workers", "ml.p5.48xlarge", 1, {"NodeType": "Compute", "PartitionNames": ["more"]})),
        "Duplicate instance group name workers",
    ),
    Wrong(
        "tiered storage on Slurm",
        _cluster(TieredStorageConfig={"Mode": "Enable"}),
        "TieredStorageConfig is supported for clusters with Amazon EKS only",
    ),
    Wrong(
        "Spot Instances on Slurm",
        _workers(CapacityRequirements={"Spot": {}}),
        "CapacityRequirements Spot is supported for clusters with Amazon EKS only",
    ),
    Wrong(
        "an image of nobody's",
        _workers(ImageId="ami-0a1b2c3d4e5f67890"),
        "The image ami-0a1b2c3d4e5f67890 does not exist, or is not owned by the account 123456789012",
    ),
    Wrong(
        "a root volume with a size",
        _workers(InstanceStorageConfigs=[{"EbsVolumeConfig": {**_ROOT, "VolumeSizeInGB": 100}}]),
        "An EbsVolumeConfig with RootVolume must have VolumeKmsKeyId, and no VolumeSizeInGB",
    ),
    Wrong(
        "a second volume without a size",
        _workers(InstanceStorageConfigs=[{"EbsVolumeConfig": {**_ROOT, "RootVolume": False}}]),
        "An EbsVolumeConfig without RootVolume must have VolumeSizeInGB",
    ),
    Wrong(
        "a role of EC2's",
        _workers(ExecutionRole={"Fn::GetAtt": ["NodeRole", "Arn"]}),
        "Please ensure that the role exists and allows principal 'sagemaker.amazonaws.com'",
    ),
)


def wrong_template(wrong: Wrong) -> Template:
    """Return the template that SageMaker refuses.

    Args:
        wrong: The row of the table.
    """
    template = hyperpod_template()
    trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
    template["Resources"]["NodeRole"] = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": [trust]}},
    }
    wrong.change(template["Resources"]["HyperPod"]["Properties"])
    return template
