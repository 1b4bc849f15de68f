"""What exists in the account, asked of its APIs and not of the template."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from cluster_contract.tags import CLUSTER_TAG

Client = Callable[[str], Any]
"""Makes a client of the local AWS for a service's name."""


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


def instances(client: Client, ids: list[str]) -> list[dict[str, Any]]:
    """Describe instances of EC2's by their ids.

    Args:
        client: Makes clients of the local AWS.
        ids: The ids.
    """
    if not ids:
        return []
    pages = (
        client("ec2").get_paginator("describe_instances").paginate(Filters=[{"Name": "instance-id", "Values": ids}])
    )
    return list(pages.search("Reservations[].Instances[]"))


def runbook(client: Client, stack: str) -> str:
    """Return the name of a stack's one Automation runbook.

    Args:
        client: Makes clients of the local AWS.
        stack: The stack's name.
    """
    ssm, resources = client("ssm"), stack_resources(client, stack)
    names = [one["PhysicalResourceId"] for one in resources if one["ResourceType"] == "AWS::SSM::Document"]
    documents = (ssm.describe_document(Name=name)["Document"] for name in names)
    (only,) = (one["Name"] for one in documents if one["DocumentType"] == "Automation")
    return str(only)


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
                "imported_events": _events(link, "AutoImportPolicy"),
                "exported_events": _events(link, "AutoExportPolicy"),
                "objects": _objects(client, link["DataRepositoryPath"]),
            }
            for link in found
        ),
        key=lambda link: str(link["file_system_path"]),
    )


def _events(link: Mapping[str, Any], policy: str) -> list[str]:
    events: list[str] = link.get("S3", {}).get(policy, {}).get("Events", [])
    return events


def _objects(client: Client, address: str) -> int:
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    pages = client("s3").get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return sum(page["KeyCount"] for page in pages)
