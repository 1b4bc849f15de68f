"""What exists in the account, asked of its APIs and not of the template."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cdk_training_cluster.tags import CLUSTER_TAG, NODE_GROUP_TAG

Client = Callable[[str], Any]
"""Makes a client of the local AWS for a service's name."""

_GONE = ("shutting-down", "terminated")


def stacks(client: Client, names: list[str]) -> dict[str, dict[str, Any]]:
    """Describe stacks by name: status, protection, and their resources by type.

    Args:
        client: Makes clients of the local AWS.
        names: The stacks that are asked about; one that is gone is left out.
    """
    cloudformation = client("cloudformation")
    found = {}
    for stack in cloudformation.get_paginator("describe_stacks").paginate().search("Stacks[]"):
        if stack["StackName"] in names and stack["StackStatus"] != "DELETE_COMPLETE":
            found[stack["StackName"]] = {
                "status": stack["StackStatus"],
                "termination_protection": stack.get("EnableTerminationProtection", False),
                "resources": dict(sorted(resource_counts(client, [stack["StackName"]])[stack["StackName"]].items())),
            }
    return found


def stack_resources(client: Client, stack: str) -> list[dict[str, Any]]:
    """List the resources of a stack.

    Args:
        client: Makes clients of the local AWS.
        stack: The stack's name.
    """
    paginator = client("cloudformation").get_paginator("list_stack_resources")
    return list(paginator.paginate(StackName=stack).search("StackResourceSummaries[]"))


def resource_counts(client: Client, stacks: Iterable[str]) -> dict[str, Counter[str]]:
    """Count the resources of stacks by type.

    Args:
        client: Makes clients of the local AWS.
        stacks: The stacks' names.
    """
    return {
        stack: Counter(resource["ResourceType"] for resource in stack_resources(client, stack)) for stack in stacks
    }


def output(client: Client, stack: str, key: str) -> str:
    """Return the value of a stack's output.

    Args:
        client: Makes clients of the local AWS.
        stack: The stack's name.
        key: The output's key.
    """
    outputs = client("cloudformation").describe_stacks(StackName=stack)["Stacks"][0]["Outputs"]
    return next(str(each["OutputValue"]) for each in outputs if each["OutputKey"] == key)


def functions(client: Client, stack: str, account: str, region: str) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the configuration of each Lambda function of a stack, with the zip that was uploaded for it.

    Args:
        client: Makes clients of the local AWS.
        stack: The stack's name.
        account: The account, for the name of the bucket.
        region: The region, likewise.
    """
    template = client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    for resource in stack_resources(client, stack):
        if resource["ResourceType"] == "AWS::Lambda::Function":
            code = template["Resources"][resource["LogicalResourceId"]]["Properties"]["Code"]
            bucket = code["S3Bucket"]
            if isinstance(bucket, dict):
                bucket = bucket["Fn::Sub"].replace("${AWS::AccountId}", account).replace("${AWS::Region}", region)
            body = client("s3").get_object(Bucket=bucket, Key=code["S3Key"])["Body"].read()
            yield client("lambda").get_function_configuration(FunctionName=resource["PhysicalResourceId"]), body


def node_groups(client: Client, cluster: str) -> list[dict[str, Any]]:
    """Describe a cluster's node groups from their Auto Scaling groups and the instances that run.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name, as in its tag.
    """
    autoscaling = client("autoscaling")
    filters = [{"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]}]
    groups = autoscaling.get_paginator("describe_auto_scaling_groups").paginate(Filters=filters)
    return sorted(
        (_node_group(client, group) for group in groups.search("AutoScalingGroups[]")),
        key=lambda group: str(group["name"]),
    )


def _node_group(client: Client, group: dict[str, Any]) -> dict[str, Any]:
    tags = {tag["Key"]: tag["Value"] for tag in group["Tags"]}
    running = sorted(
        instances(client, {"tag:aws:autoscaling:groupName": group["AutoScalingGroupName"]}),
        key=lambda instance: str(instance["InstanceId"]),
    )
    return {
        "name": tags.get(NODE_GROUP_TAG),
        "instance_type": _only({instance["InstanceType"] for instance in running}),
        "count_running": len(running),
        "network_interfaces": _only({len(instance["NetworkInterfaces"]) for instance in running}),
        "efa_interfaces": _only({_efa(instance) for instance in running}),
        "placement_group": _only({instance["Placement"].get("GroupName") or None for instance in running}),
        "market": _only({instance.get("InstanceLifecycle", "on-demand") for instance in running}),
        "availability_zone": _only({instance["Placement"]["AvailabilityZone"] for instance in running}),
        "auto_scaling_group": group["AutoScalingGroupName"],
        "desired_capacity": group["DesiredCapacity"],
        "instance_ids": [instance["InstanceId"] for instance in running],
        "power": {key.split(":", 1)[1]: value for key, value in sorted(tags.items()) if ":power-" in key},
    }


def instances(client: Client, filters: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the instances that are not gone and match every filter.

    Args:
        client: Makes clients of the local AWS.
        filters: DescribeInstances' filters, one value each.
    """
    paginator = client("ec2").get_paginator("describe_instances")
    pages = paginator.paginate(Filters=[{"Name": name, "Values": [value]} for name, value in filters.items()])
    for instance in pages.search("Reservations[].Instances[]"):
        if instance["State"]["Name"] not in _GONE:
            yield instance


def file_systems(client: Client, cluster: str) -> list[dict[str, Any]]:
    """Describe the file systems that carry the cluster's tag.

    Args:
        client: Makes clients of the local AWS.
        cluster: The cluster's name.
    """
    found = client("fsx").get_paginator("describe_file_systems").paginate().search("FileSystems[]")
    return [
        {
            "id": system["FileSystemId"],
            "lifecycle": system.get("Lifecycle", "AVAILABLE"),
            "type": system["FileSystemType"],
            "deployment_type": system["LustreConfiguration"]["DeploymentType"],
            "storage_capacity_gib": system["StorageCapacity"],
            "throughput_mbps_per_tib": system["LustreConfiguration"]["PerUnitStorageThroughput"],
            "data_compression": system["LustreConfiguration"]["DataCompressionType"],
            "mount_name": system["LustreConfiguration"]["MountName"],
            "dns_name": system["DNSName"],
            "vpc_id": system["VpcId"],
            "subnet_ids": system["SubnetIds"],
        }
        for system in found
        if {"Key": CLUSTER_TAG, "Value": cluster} in system.get("Tags", [])
    ]


def datasets(client: Client, file_system_id: str) -> list[dict[str, Any]]:
    """Describe what is linked to a file system, with the objects that lie behind each link.

    Args:
        client: Makes clients of the local AWS.
        file_system_id: The file system.
    """
    # A file system has eight links at the most: one page holds them.
    found = client("fsx").describe_data_repository_associations(
        Filters=[{"Name": "file-system-id", "Values": [file_system_id]}]
    )["Associations"]
    return sorted(
        (
            {
                "file_system_path": link["FileSystemPath"],
                "data_repository_path": link["DataRepositoryPath"],
                "lifecycle": link["Lifecycle"],
                "imported_events": link["S3"]["AutoImportPolicy"]["Events"],
                "objects": _objects(client, link["DataRepositoryPath"]),
            }
            for link in found
        ),
        key=lambda link: str(link["file_system_path"]),
    )


def _objects(client: Client, address: str) -> int:
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    pages = client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return sum(page["KeyCount"] for page in pages)


def _efa(instance: dict[str, Any]) -> int:
    return sum(interface["InterfaceType"] in ("efa", "efa-only") for interface in instance["NetworkInterfaces"])


def _only(values: set[Any]) -> Any:
    """Return the value that all nodes share, None where there are none, and all of them where they differ."""
    return sorted(values, key=str) if len(values) > 1 else next(iter(values), None)
