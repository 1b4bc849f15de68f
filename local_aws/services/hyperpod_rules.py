"""What SageMaker refuses of a HyperPod cluster.

AWS documents these rules, and not always the words in which a request is refused.

Sources: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-ref.html (Slurm),
https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-getting-started-slurm-cli.html (life cycle),
https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-scaling-slurm.html (continuous provisioning),
https://docs.aws.amazon.com/sagemaker/latest/dg/hyperpod-custom-ami-support.html (images) and
https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterEbsVolumeConfig.html and
https://docs.aws.amazon.com/sagemaker/latest/dg/smcluster-cmk.html (volumes)
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import botocore.session
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from local_aws.refusal import Refusal

_Groups = Sequence[Mapping[str, Any]]


def check(account: str, given: Mapping[str, Any]) -> None:
    """Refuse a cluster that SageMaker would not make.

    Args:
        account: The account.
        given: The request, or a cluster after an update.
    """
    groups: _Groups = given["InstanceGroups"]
    for problem in (
        *_name_problems(groups),
        *_type_problems(groups),
        *_role_problems(account, groups),
        *_count_problems(given, groups),
        *(_eks_problems(groups) if "Eks" in given.get("Orchestrator", {}) else _slurm_problems(given, groups)),
        *_life_cycle_problems(groups),
        *_image_problems(account, groups),
        *_volume_problems(given, groups),
    ):
        raise Refusal("ValidationException", problem)


def check_update(before: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> None:
    """Refuse an update that SageMaker refuses.

    Args:
        before: The instance groups that there are, by name.
        given: The request.
    """
    for group in given.get("InstanceGroups", []):
        old = before.get(group["InstanceGroupName"], {})
        for what in ("SlurmConfig.NodeType", "CapacityRequirements"):
            now, then = _at(group, what), _at(old, what)
            if old and now is not None and now != then:
                name = group["InstanceGroupName"]
                raise Refusal("ValidationException", f"{what} of instance group {name} cannot be changed")
        if old and "InstanceStorageConfigs" in group and _keys(group) != _keys(old):
            name = group["InstanceGroupName"]
            raise Refusal("ValidationException", f"VolumeKmsKeyId of instance group {name} cannot be changed")


def _at(group: Mapping[str, Any], path: str) -> Any:
    value: Any = group
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _name_problems(groups: _Groups) -> Iterator[str]:
    for name, count in Counter(each["InstanceGroupName"] for each in groups).items():
        if count > 1:
            yield f"Duplicate instance group name {name}"


@cache
def _sold() -> frozenset[str]:
    shape: Any = botocore.session.get_session().get_service_model("sagemaker").shape_for("ClusterInstanceType")
    return frozenset(shape.enum)


def _type_problems(groups: _Groups) -> Iterator[str]:
    for place, group in enumerate(groups, start=1):
        kind = group.get("InstanceType")
        if kind not in _sold():
            yield (
                f"1 validation error detected: Value '{kind}' at 'instanceGroups.{place}.member.instanceType' failed "
                "to satisfy constraint: Member must satisfy enum value set"
            )


def _role_problems(account: str, groups: _Groups) -> Iterator[str]:
    roles = {role.arn: role for role in iam_backends[account]["aws"].roles.values()}
    for group in groups:
        arn = group["ExecutionRole"]
        trusted = json.dumps(roles[arn].assume_role_policy_document) if arn in roles else ""
        if not re.search(r"sagemaker\.amazonaws\.com", trusted):
            yield (
                f"Could not assume role {arn}. Please ensure that the role exists and allows principal "
                "'sagemaker.amazonaws.com'"
            )


def _count_problems(given: Mapping[str, Any], groups: _Groups) -> Iterator[str]:
    for group in groups:
        least = group.get("MinInstanceCount")
        if least is None:
            continue
        if given.get("NodeProvisioningMode") != "Continuous":
            yield "MinInstanceCount is only supported when NodeProvisioningMode is Continuous"
        if least > group["InstanceCount"]:
            yield f"MinInstanceCount {least} must not be greater than InstanceCount {group['InstanceCount']}"


def _slurm_problems(given: Mapping[str, Any], groups: _Groups) -> Iterator[str]:
    slurm = [each.get("SlurmConfig") for each in groups]
    kinds = Counter(each["NodeType"] for each in slurm if each)
    if kinds["Controller"] != 1:
        yield f"Exactly one instance group must have the Slurm node type Controller, found {kinds['Controller']}"
    if kinds["Login"] > 1:
        yield f"At most one instance group can have the Slurm node type Login, found {kinds['Login']}"
    for each in (each for each in slurm if each):
        if (each["NodeType"] == "Compute") != (len(each.get("PartitionNames", [])) == 1):
            kind = each["NodeType"]
            yield f"PartitionNames is required for Compute and not allowed for other node types, got {kind}"
    strategy = given.get("Orchestrator", {}).get("Slurm", {}).get("SlurmConfigStrategy")
    if strategy and given.get("NodeProvisioningMode") == "Continuous":
        yield "SlurmConfigStrategy is not supported when NodeProvisioningMode is Continuous"
    if not given.get("VpcConfig") and any("FsxLustreConfig" in str(each) for each in groups):
        yield "VpcConfig is required when FsxLustreConfig is specified"
    if given.get("TieredStorageConfig", {}).get("Mode") == "Enable":
        yield "TieredStorageConfig is supported for clusters with Amazon EKS only"
    if any("Spot" in each.get("CapacityRequirements", {}) for each in groups):
        yield "CapacityRequirements Spot is supported for clusters with Amazon EKS only"


def _eks_problems(groups: _Groups) -> Iterator[str]:
    for group in groups:
        name = group["InstanceGroupName"]
        if "SlurmConfig" in group:
            yield f"SlurmConfig of instance group {name} is not allowed with Amazon EKS"
        if not group.get("LifeCycleConfig", {}).get("OnCreate"):
            yield f"LifeCycleConfig with OnCreate is required for instance group {name} with Amazon EKS"


def _life_cycle_problems(groups: _Groups) -> Iterator[str]:
    for group in groups:
        config = group.get("LifeCycleConfig", {})
        if {"OnCreate", "OnInitComplete"} <= set(config):
            yield "OnCreate and OnInitComplete are mutually exclusive"
        if config and not config.get("SourceS3Uri"):
            yield "SourceS3Uri is required in LifeCycleConfig"


def _image_problems(account: str, groups: _Groups) -> Iterator[str]:
    for group in groups:
        name = group.get("ImageId", "default")
        if name == "default":
            continue
        images = [backend.amis[name] for backend in ec2_backends[account].values() if name in backend.amis]
        if not images or any(each.owner_id != account for each in images):
            yield f"The image {name} does not exist, or is not owned by the account {account}"
        if any(each.ebs_snapshot.encrypted for each in images):
            # https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterInstanceGroupSpecification.html
            yield f"The image {name} is encrypted"


def _volume_problems(given: Mapping[str, Any], groups: _Groups) -> Iterator[str]:
    for group in groups:
        for each in group.get("InstanceStorageConfigs", []):
            volume = each.get("EbsVolumeConfig")
            if volume is None:
                continue
            root, key, size = (volume.get(each) for each in ("RootVolume", "VolumeKmsKeyId", "VolumeSizeInGB"))
            if root and (size is not None or not key):
                yield "An EbsVolumeConfig with RootVolume must have VolumeKmsKeyId, and no VolumeSizeInGB"
            if not root and size is None:
                yield "An EbsVolumeConfig without RootVolume must have VolumeSizeInGB"
            if key and given.get("NodeProvisioningMode") != "Continuous":
                yield "VolumeKmsKeyId is only supported when NodeProvisioningMode is Continuous"


def _keys(group: Mapping[str, Any]) -> list[Any]:
    """Return the keys of a group's volumes, which it keeps for its life."""
    volumes = [each.get("EbsVolumeConfig", {}) for each in group.get("InstanceStorageConfigs", [])]
    return [volume["VolumeKmsKeyId"] for volume in volumes if volume.get("VolumeKmsKeyId")]
