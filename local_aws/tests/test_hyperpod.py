"""HyperPod of the local AWS: instance groups follow their counts, and change as SageMaker changes them."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from hyperpod_scene import TASK_GOVERNANCE, eks_cluster
from local_aws import LocalAws
from local_aws_scene import Stacks
from wrong_hyperpod import WRONG, Wrong, governed_template, hyperpod_template, wrong_template


def _counts(sagemaker: Any) -> dict[str, int]:
    nodes = sagemaker.list_cluster_nodes(ClusterName="llama")["ClusterNodeSummaries"]
    groups = [each["InstanceGroupName"] for each in nodes]
    return {name: groups.count(name) for name in groups}


def test_a_cluster_follows_its_sizes_and_a_deployment_that_changes_it_sets_them_anew(
    aws: LocalAws, stacks: Stacks
) -> None:
    template = hyperpod_template()
    stack = stacks.create(template)
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    sagemaker = aws.client("sagemaker")
    assert _counts(sagemaker) == {"controller": 1, "workers": 3}
    described = sagemaker.describe_cluster(ClusterName="llama")
    (workers,) = (each for each in described["InstanceGroups"] if each["InstanceGroupName"] == "workers")
    asked = {key: value for key, value in workers.items() if key not in ("CurrentCount", "TargetCount", "Status")}
    sagemaker.update_cluster(ClusterName="llama", InstanceGroups=[{**asked, "InstanceCount": 2}])
    assert _counts(sagemaker) == {"controller": 1, "workers": 2}
    node = next(
        each["InstanceId"]
        for each in sagemaker.list_cluster_nodes(ClusterName="llama", InstanceGroupNameContains="workers")[
            "ClusterNodeSummaries"
        ]
    )
    assert sagemaker.batch_delete_cluster_nodes(ClusterName="llama", NodeIds=[node])["Successful"] == [node]
    assert _counts(sagemaker) == {"controller": 1, "workers": 1}
    with pytest.raises(ClientError, match="controller"):
        sagemaker.batch_delete_cluster_nodes(
            ClusterName="llama",
            NodeIds=[
                each["InstanceId"]
                for each in sagemaker.list_cluster_nodes(ClusterName="llama")["ClusterNodeSummaries"]
                if each["InstanceGroupName"] == "controller"
            ],
        )
    template["Resources"]["HyperPod"]["Properties"]["Tags"].append({"Key": "team", "Value": "llama"})
    stacks.update(stack, template)
    assert _counts(sagemaker) == {"controller": 1, "workers": 1}
    tags = sagemaker.list_tags(ResourceArn=described["ClusterArn"])["Tags"]
    assert {"Key": "team", "Value": "llama"} in tags
    template["Resources"]["HyperPod"]["Properties"]["NodeRecovery"] = "None"
    stacks.update(stack, template)
    assert stacks.status(stack) == "UPDATE_COMPLETE", stacks.reasons(stack)
    assert _counts(sagemaker) == {"controller": 1, "workers": 3}


@pytest.fixture
def eks(aws: LocalAws, stacks: Stacks) -> Iterator[None]:
    """An EKS cluster in the network of these tests, with the add-on of task governance."""
    with eks_cluster(aws, stacks, add_ons=[TASK_GOVERNANCE]):
        yield


@pytest.mark.usefixtures("eks")
def test_the_policy_of_a_cluster_on_eks_follows_its_template(aws: LocalAws, stacks: Stacks) -> None:
    stack = stacks.create(governed_template())
    assert stacks.status(stack) == "CREATE_COMPLETE", stacks.reasons(stack)
    stacks.update(stack, governed_template(weight=20))
    assert stacks.status(stack) == "UPDATE_COMPLETE", stacks.reasons(stack)
    own = stacks.physical_ids(stack)["Policy"].rpartition("/")[2]
    described = aws.client("sagemaker").describe_cluster_scheduler_config(ClusterSchedulerConfigId=own)
    assert described["SchedulerConfig"]["PriorityClasses"] == [{"Name": "training", "Weight": 20}]


@pytest.mark.usefixtures("eks")
def test_an_image_that_is_encrypted_is_refused(aws: LocalAws, stacks: Stacks) -> None:
    image = "ami-0e0e0e0e0e0e0e0e0"
    aws.add_image(image, architecture="x86_64", root_device_name="/dev/xvda", encrypted=True)
    template = hyperpod_template()
    template["Resources"]["HyperPod"]["Properties"]["InstanceGroups"][1]["ImageId"] = image
    assert f"The image {image} is encrypted" in " ".join(stacks.reasons(stacks.create(template)).values())


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_what_sagemaker_refuses_fails_to_deploy_for_its_reason(stacks: Stacks, wrong: Wrong) -> None:
    stack = stacks.create(wrong_template(wrong))
    assert stacks.status(stack) == "ROLLBACK_COMPLETE"
    assert wrong.refusal in " ".join(stacks.reasons(stack).values())
