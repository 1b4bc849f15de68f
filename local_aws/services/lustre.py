"""FSx for Lustre: file systems that exist in a subnet, each with a directory of this machine for its files.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/what-is.html
"""

import ipaddress
import json
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from moto.ec2.models import ec2_backends

from local_aws.refusal import Refusal
from local_aws.services import keys, lustre_rules
from local_aws.services.invocations import INVOCATIONS

_LNET_PORT = 988


@dataclass
class LustreFileSystem:
    """One file system, as moto's FSx backend keeps its own."""

    file_system_id: str
    resource_arn: str
    described: dict[str, Any]
    interface_ids: list[str]
    associations: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, Any] = field(default_factory=dict)
    requested: dict[str, Any] = field(default_factory=dict)

    file_system_type = "LUSTRE"

    @property
    def partition(self) -> str:
        """The partition that it is in."""
        return self.resource_arn.split(":")[1]

    @property
    def region(self) -> str:
        """Its region."""
        return self.resource_arn.split(":")[3]

    @property
    def account(self) -> str:
        """Its account."""
        return self.resource_arn.split(":")[4]

    @property
    def directory(self) -> Path:
        """The directory with its files."""
        return INVOCATIONS.workspace / "file-systems" / self.file_system_id

    def arn(self, kind: str, thing: str) -> str:
        """Return the ARN of an association or a task of it."""
        return f"{self.resource_arn.partition(':file-system/')[0]}:{kind}/{self.file_system_id}/{thing}"

    @property
    def configuration(self) -> dict[str, Any]:
        """The LustreConfiguration."""
        configuration: dict[str, Any] = self.described["LustreConfiguration"]
        return configuration


def body_of(response: Any) -> dict[str, Any]:
    """Return the parameters of a request."""
    body: dict[str, Any] = json.loads(response.body)
    return body


def _answer(response: Any, file_system: LustreFileSystem) -> dict[str, Any]:
    tags = response.fsx_backend.list_tags_for_resource(file_system.resource_arn)
    return {**file_system.described, "Tags": tags}


def found_file_system(response: Any, file_system_id: str) -> LustreFileSystem:
    """Return the file system of an id; refuse an unknown one."""
    found = response.fsx_backend.file_systems.get(file_system_id)
    if found is None:
        raise Refusal("FileSystemNotFound", f"File system '{file_system_id}' does not exist.")
    file_system: LustreFileSystem = found
    return file_system


def _check_network(ec2: Any, subnet_ids: list[str], group_ids: list[str]) -> Any:
    """Return the subnet; refuse one that is missing, and groups that are missing or too tight.

    FSx looks for Lustre's port 988 in the groups at creation: rules that come later come too late.
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html and
    https://github.com/aws/aws-parallelcluster/issues/6181
    """
    subnets = [subnet for zones in ec2.subnets.values() for subnet in zones.values()]
    if len(subnet_ids) != 1:
        raise Refusal("BadRequest", "Exactly one subnet must be specified for a Lustre file system.")
    subnet = next((subnet for subnet in subnets if subnet.id == subnet_ids[0]), None)
    if subnet is None:
        raise Refusal("InvalidNetworkSettings", f"The subnet ID '{subnet_ids[0]}' does not exist.")
    groups = [ec2.get_security_group_from_id(group_id) for group_id in group_ids]
    for group_id, group in zip(group_ids, groups, strict=True):
        if group is None or group.vpc_id != subnet.vpc_id:
            raise Refusal(
                "InvalidNetworkSettings",
                f"The security group '{group_id}' does not exist in VPC '{subnet.vpc_id}'.",
            )
    groups = groups or [ec2.get_default_security_group(subnet.vpc_id)]
    ids = {group.id for group in groups}
    for rules in ("ingress_rules", "egress_rules"):
        if not any(_permits(rule, ids, subnet) for group in groups for rule in getattr(group, rules)):
            raise Refusal(
                "InvalidNetworkSettings",
                "The file system cannot be created because the default security group in the subnet provided or "
                f"the provided security groups do not permit Lustre LNET network traffic on port {_LNET_PORT}",
            )
    return subnet


def _check_efa_network(ec2: Any, group_ids: list[str]) -> None:
    """Refuse groups that do not let all of their own traffic in and out.

    https://docs.aws.amazon.com/fsx/latest/LustreGuide/cannot-create-fs.html
    """
    groups = [ec2.get_security_group_from_id(group_id) for group_id in group_ids]
    for rules in ("ingress_rules", "egress_rules"):
        if not any(
            rule.ip_protocol == "-1" and rule.source_group.get("GroupId") == group.id
            for group in groups
            for rule in getattr(group, rules)
        ):
            raise Refusal(
                "InvalidNetworkSettings",
                "Insufficient security group permissions to create an EFA-enabled file system. Update security group "
                "to allow all internal inbound and outbound traffic.",
            )


def _permits(rule: Any, group_ids: set[str], subnet: Any) -> bool:
    """Tell whether a rule lets Lustre's traffic pass between the file system's own servers."""
    if rule.ip_protocol not in {"-1", "tcp"}:
        return False
    if rule.ip_protocol == "tcp" and not rule.from_port <= _LNET_PORT <= rule.to_port:
        return False
    if rule.source_group.get("GroupId") in group_ids:
        return True
    own = ipaddress.IPv4Network(subnet.cidr_block)
    return bool(rule.cidr_ipv4) and own.subnet_of(ipaddress.IPv4Network(rule.cidr_ipv4))


def create_file_system(response: Any) -> str:
    """Answer CreateFileSystem for Lustre."""
    request, backend = body_of(response), response.fsx_backend
    if request["FileSystemType"] != "LUSTRE":
        raise NotImplementedError(f"FSx file systems of type {request['FileSystemType']}")
    configuration = {"DeploymentType": "SCRATCH_1", **request.get("LustreConfiguration", {})}
    storage_type = request.get("StorageType", "SSD")
    lustre_rules.check_file_system(
        storage_type, request.get("StorageCapacity"), configuration, key=request.get("KmsKeyId")
    )
    keys.check_file_system_key(request.get("KmsKeyId"), response.current_account, response.region)
    version = lustre_rules.lustre_version(configuration, request.get("FileSystemTypeVersion"))
    ec2 = ec2_backends[response.current_account][response.region]
    group_ids = request.get("SecurityGroupIds") or []
    subnet = _check_network(ec2, request["SubnetIds"], group_ids)
    if configuration.get("EfaEnabled"):
        _check_efa_network(ec2, group_ids)
    if subnet.available_ip_address_count < 1:
        raise Refusal("InvalidNetworkSettings", f"There are no free addresses in subnet '{subnet.id}'.")

    file_system_id = f"fs-0{token_hex(8)}"
    arn = f"arn:{response.partition}:fsx:{response.region}:{response.current_account}:file-system/{file_system_id}"
    interface = ec2.create_network_interface(
        subnet,
        subnet.get_available_subnet_ip(None),
        group_ids=group_ids,
        description=f"Created by Amazon FSx for {file_system_id}",
    )
    interface.requester_managed = True
    file_system = LustreFileSystem(
        file_system_id,
        arn,
        {
            "OwnerId": response.current_account,
            "CreationTime": time.time(),
            "FileSystemId": file_system_id,
            "FileSystemType": "LUSTRE",
            "FileSystemTypeVersion": version,
            "Lifecycle": "AVAILABLE",
            "StorageCapacity": request.get("StorageCapacity"),
            "StorageType": storage_type,
            "VpcId": subnet.vpc_id,
            "SubnetIds": request["SubnetIds"],
            "NetworkInterfaceIds": [interface.id],
            "DNSName": f"{file_system_id}.fsx.{response.region}.amazonaws.com",
            "KmsKeyId": request.get("KmsKeyId"),
            "ResourceARN": arn,
            "LustreConfiguration": {
                "EfaEnabled": False,
                "DataCompressionType": "NONE",
                **configuration,
                "MountName": token_hex(4),
            },
        },
        [interface.id],
    )
    backend.file_systems[file_system_id] = file_system
    if request.get("Tags"):
        backend.tagger.tag_resource(arn, request["Tags"])
    return json.dumps({"FileSystem": _answer(response, file_system)})


def update_file_system(response: Any) -> str:
    """Answer UpdateFileSystem: what it takes of a Lustre file system changes at once."""
    request = body_of(response)
    file_system = found_file_system(response, request["FileSystemId"])
    lustre_rules.check_update(file_system.described, request, linked=bool(file_system.associations))
    if "StorageCapacity" in request:
        file_system.described["StorageCapacity"] = request["StorageCapacity"]
    file_system.configuration.update(request.get("LustreConfiguration", {}))
    return json.dumps({"FileSystem": _answer(response, file_system)})


def describe_file_systems(response: Any) -> str:
    """Answer DescribeFileSystems; an unknown id is an error, as with FSx."""
    wanted = body_of(response).get("FileSystemIds") or list(response.fsx_backend.file_systems)
    shown = [_answer(response, found_file_system(response, file_system_id)) for file_system_id in wanted]
    return json.dumps({"FileSystems": shown})


def delete_file_system(response: Any) -> str:
    """Answer DeleteFileSystem: its links, its files and its network interface go with it."""
    file_system = found_file_system(response, body_of(response)["FileSystemId"])
    if any(task["Lifecycle"] == "EXECUTING" for task in file_system.tasks.values()):
        raise Refusal("BadRequest", "A file system with a data repository task in the state EXECUTING stays.")
    ec2 = ec2_backends[response.current_account][response.region]
    for interface_id in file_system.interface_ids:
        ec2.enis[interface_id].delete()
    del response.fsx_backend.file_systems[file_system.file_system_id]
    shutil.rmtree(file_system.directory, ignore_errors=True)
    return json.dumps({"FileSystemId": file_system.file_system_id, "Lifecycle": "DELETING"})
