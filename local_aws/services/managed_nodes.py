"""The instances that Systems Manager manages, and what of a node this machine stands in for.

A node's root directory is a directory of this machine, with the file systems that it mounts in it; a document's lines
find it in the variable ROOT.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models import ec2_backends
from moto.fsx.models import fsx_backends
from moto.iam.models import iam_backends

from local_aws.policies import Call, is_allowed
from local_aws.refusal import Refusal
from local_aws.services.answers import page
from local_aws.services.invocations import INVOCATIONS
from local_aws.services.roles import statements_of

# What the agent calls first: https://docs.aws.amazon.com/systems-manager/latest/userguide/setup-instance-permissions.html
_REGISTERS = "ssm:UpdateInstanceInformation"
# Images have a python3; where this machine has none, that of the local AWS takes its place.
_USUAL_PATH = ("/usr/local/bin", "/usr/bin", "/bin", str(Path(sys.executable).parent))
_PAGE = 50

UNENDED = ("Pending", "InProgress", "Delayed")
STATUSES = {
    **{details: details for details in (*UNENDED, "Cancelled", "Failed")},
    **{"Undeliverable": "Failed", "DeliveryTimedOut": "TimedOut", "ExecutionTimedOut": "TimedOut"},
}
"""What a test can let become of commands, and the status of an invocation of which these are the details."""


@dataclass
class Nodes:
    """How nodes are set up.

    Attributes:
        path: Directories that come first in the variable PATH.
        root: A directory whose entries every node has in its own root directory.
        variables: More variables.
        mounts: The ids of file systems by the directories at which nodes mount them.
        unreachable: The ids of instances whose agents have lost their connection.
        runs_any_shell: Whether lines that a user sends are run on this machine.
        fates: What becomes of commands that are sent to instances, in place of being run, by their ids.
    """

    path: tuple[str, ...] = ()
    root: Path | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)
    runs_any_shell: bool = False
    unreachable: set[str] = field(default_factory=set)
    fates: dict[str, str] = field(default_factory=dict)

    def environment(self, instance: Any) -> dict[str, str]:
        """Return the variables of a node's shell; its root directory is made with what it mounts."""
        backend = instance.ec2_backend
        root = INVOCATIONS.workspace / "nodes" / instance.id
        file_systems = fsx_backends[backend.account_id][backend.region_name].file_systems
        root.mkdir(parents=True, exist_ok=True)
        for entry in [] if self.root is None else self.root.iterdir():
            _link(root / entry.name, entry)
        for mount_point, file_system_id in self.mounts.items():
            file_system, place = file_systems.get(file_system_id), root / mount_point.strip("/")
            if file_system is not None:
                for part in ("files", "objects"):
                    (file_system.directory / part).mkdir(parents=True, exist_ok=True)
                _link(place, file_system.directory / "files")
        path = ":".join([*self.path, *_USUAL_PATH])
        return {"HOME": str(root), "LANG": "C.UTF-8", "PATH": path, "ROOT": str(root), **self.variables}


def _link(place: Path, target: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


NODES = Nodes()


def is_online(instance: Any) -> bool:
    """Tell whether Systems Manager reaches an instance: it runs, and its role lets its agent register."""
    return instance.state == "running" and instance.id not in NODES.unreachable and _may_register(instance)


def _may_register(instance: Any) -> bool:
    backend, arn = instance.ec2_backend, (instance.iam_instance_profile or {}).get("Arn")
    profiles = iam_backends[backend.account_id][backend.partition].instance_profiles.values()
    roles = [role for profile in profiles if profile.arn == arn for role in profile.roles]
    call = Call(action=_REGISTERS, resource="*", region=backend.region_name)
    return any(is_allowed(statements_of(role.arn), call) for role in roles)


def describe_instance_information(response: Any) -> ActionResult:
    """Answer DescribeInstanceInformation: running instances whose agents could register.

    https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeInstanceInformation.html
    """
    ec2 = ec2_backends[response.current_account][response.region]
    instances = [one for each in ec2.all_reservations() for one in each.instances if one.state == "running"]
    shown = [_described(instance) for instance in instances if _may_register(instance)]
    for condition in response._get_param("Filters") or []:
        name = {"InstanceIds": "InstanceId"}.get(condition["Key"], condition["Key"])
        if name not in {"InstanceId", "PingStatus"}:
            raise NotImplementedError(f"the filter {condition['Key']}")
        shown = [one for one in shown if one[name] in condition["Values"]]
    size = int(response._get_param("MaxResults") or _PAGE)
    some, token = page(shown, response._get_param("NextToken"), size)
    return ActionResult({"InstanceInformationList": list(some), **({"NextToken": token} if token else {})})


def _described(instance: Any) -> dict[str, Any]:
    return {
        "InstanceId": instance.id,
        "PingStatus": "ConnectionLost" if instance.id in NODES.unreachable else "Online",
        "PlatformType": "Linux",
        "ResourceType": "EC2Instance",
        "IPAddress": instance.private_ip,
    }


def online_instance(response: Any, instance_id: str) -> Any:
    """Return an instance that commands can be sent to; refuse any other, as SendCommand does."""
    ec2 = ec2_backends[response.current_account][response.region]
    instance = next((one for each in ec2.all_reservations() for one in each.instances if one.id == instance_id), None)
    if instance is None or not is_online(instance):
        raise Refusal(
            "InvalidInstanceId",
            f"Instances [[{instance_id}]] not in a valid state for account {response.current_account}",
        )
    return instance


def set_up(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Set all nodes up: what is first in PATH and in their root directories, more variables, and what they mount."""
    NODES.path = tuple(str(Path(one)) for one in request["path"])
    NODES.root = Path(request["root"]) if request["root"] else None
    NODES.runs_any_shell = bool(request["runs_any_shell"])
    NODES.variables, NODES.mounts = dict(request["variables"]), dict(request["mounts"])
    return {}


def set_node(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let a node be unreachable, or commands that are sent to it have a fate."""
    instance_id, fate = str(request["instance_id"]), request.get("fate")
    (NODES.unreachable.discard if request["online"] else NODES.unreachable.add)(instance_id)
    NODES.fates.pop(instance_id, None)
    if fate is not None and fate not in STATUSES:
        raise ValueError(f"a command's fate is {', '.join(STATUSES)}, not {fate}")
    if fate is not None:
        NODES.fates[instance_id] = str(fate)
    return {}
