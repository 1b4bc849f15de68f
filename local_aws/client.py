"""The local AWS as its users see it: a context manager around one server process."""

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from local_aws import defaults, sessions
from local_aws.steering import Steering

_START_SECONDS = 600.0
_STOP_SECONDS = 60.0
_ROOT = Path(__file__).resolve().parents[1]


class LocalAwsError(RuntimeError):
    """The local AWS did not start, or answered a control request with an error."""


class LocalAws(Steering):
    """Start the local AWS on a free port of localhost and stop it, by its process, at the end.

    The server process inherits none of the user's AWS settings; `environment()` is what a child process
    that shall use it needs, and `client()` is the same for this process. Nothing of it survives the
    context but the log.

    Args:
        log: The file that the server's log is written to.
        region: The region that clients and the CDK CLI use. Default: us-east-1.
        account: The account that all of it is in. Default: the one of AWS's examples.

    Raises:
        LocalAwsError: There is no such region.
    """

    def __init__(self, log: Path, *, region: str = defaults.REGION, account: str = defaults.ACCOUNT) -> None:
        if region not in sessions.regions():
            raise LocalAwsError(f"the local AWS has no region {region}: nothing can be rehearsed there")
        self.log = log
        self.region = region
        self.account = account
        self._process: subprocess.Popen[bytes] | None = None
        self._port: int | None = None
        self._clients: dict[tuple[str, str], Any] = {}
        self._resources = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._home = self._resources.enter_context(tempfile.TemporaryDirectory(prefix="local-aws-"))
        self.log.parent.mkdir(parents=True, exist_ok=True)
        log = self._resources.enter_context(self.log.open("wb"))
        environment = defaults.without_aws_settings(os.environ)
        environment["PYTHONPATH"] = str(_ROOT)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "local_aws", "--region", self.region),
                *("--account", self.account, "--workspace", str(Path(self._home, "functions"))),
            ],
            stdin=subprocess.PIPE,  # the server ends when this closes, so that it never outlives us
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
        )
        self._resources.callback(self._stop)
        try:
            self._port = self._announced_port(self._process)
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def endpoint_url(self) -> str:
        """The address of every service: by the name localhost, since template addresses name it."""
        if self._port is None:
            raise LocalAwsError("the local AWS is not running: use it as a context manager")
        return f"http://{defaults.HOST}:{self._port}"

    @property
    def process_id(self) -> int:
        """The server's process id."""
        if self._process is None:
            raise LocalAwsError("the local AWS is not running: use it as a context manager")
        return self._process.pid

    def environment(self, base: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the environment of a child process (the CDK CLI, a function) that uses this AWS only.

        Args:
            base: What to start from. Default: - this process's environment. Its AWS and CDK settings and
                proxies are left out either way.
        """
        environment = defaults.without_aws_settings(os.environ if base is None else base)
        return {
            **environment,
            **defaults.for_clients(self.endpoint_url, self.region),
            # The CDK CLI remembers which account a key belongs to: not beside the user's own.
            "CDK_HOME": self._home,
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "CDK_DISABLE_VERSION_CHECK": "true",
            "CDK_NOTICES": "false",
            "CDK_VERSION_REPORTING": "false",
        }

    def client(self, service: str, region: str | None = None) -> Any:
        """Return a boto3 client of `service`, such as "ec2", that uses this AWS only."""
        key = (service, region or self.region)
        if key not in self._clients:
            self._clients[key] = sessions.client(service, self.endpoint_url, key[1])
        return self._clients[key]

    def set_capacity(self, instance_type: str, availability_zone: str, *, available: int | None = 0) -> None:
        """Say how many more instances of a type EC2 has in a zone; groups that are short try again at once.

        Args:
            instance_type: The type, such as "p4de.24xlarge".
            availability_zone: The zone, such as "us-east-1b".
            available: How many more can be launched; None lifts the limit. Default: 0: none.
        """
        self._control(
            "capacity",
            {"instance_type": instance_type, "availability_zone": availability_zone, "available": available},
        )

    def need_slurm_nodes(self, compute_node_group_id: str, count: int) -> None:
        """Take the place of Slurm's jobs: have a compute node group of AWS PCS run nodes, up to its size.

        Args:
            compute_node_group_id: The group's id.
            count: How many nodes the jobs need.
        """
        self._control("slurm-nodes", {"group": compute_node_group_id, "count": count})

    def put_capacity_block(
        self,
        capacity_reservation_id: str,
        *,
        start: datetime,
        end: datetime,
        instance_type: str | None = None,
        instance_count: int | None = None,
        availability_zone: str | None = None,
        instance_platform: str | None = None,
    ) -> None:
        """Buy a Capacity Block, or move the one of this id, as an extension does.

        Instances in a block that ends within half an hour (an UltraServer: an hour) are terminated at once.

        Args:
            capacity_reservation_id: The id, such as "cr-0123456789abcdef0".
            start: When it starts.
            end: When it ends.
            instance_type: Its type; needed for a new one, as are count and zone.
            instance_count: How many instances it has.
            availability_zone: The zone's name.
            instance_platform: The platform of the images that run in it. Default: - Linux/UNIX
        """
        request = {
            "capacity_reservation_id": capacity_reservation_id,
            "start": start.isoformat(),
            "end": end.isoformat(),
            "instance_type": instance_type,
            "instance_count": instance_count,
            "availability_zone": availability_zone,
            "instance_platform": instance_platform,
        }
        self._control("capacity-blocks", {**self._place, **_given(request)})

    def remove_capacity_block(self, capacity_reservation_id: str) -> None:
        """Take a Capacity Block away, with the instances in it.

        Args:
            capacity_reservation_id: The block's id.
        """
        request = {"capacity_reservation_id": capacity_reservation_id, "removed": True}
        self._control("capacity-blocks", {**self._place, **request})

    def add_capacity_reservation(
        self,
        capacity_reservation_id: str,
        *,
        instance_type: str,
        instance_count: int,
        availability_zone: str,
        instance_platform: str | None = None,
        placement_group: str | None = None,
    ) -> None:
        """Make a targeted On-Demand Capacity Reservation with an id of the caller's.

        Args:
            capacity_reservation_id: The id, such as "cr-0123456789abcdef0".
            instance_type: Its type.
            instance_count: How many instances it reserves.
            availability_zone: The zone's name.
            instance_platform: The platform of the images that run in it. Default: - Linux/UNIX
            placement_group: The cluster placement group that it is in; made unless it is there. Default: - none
        """
        request = {
            "capacity_reservation_id": capacity_reservation_id,
            "instance_type": instance_type,
            "instance_count": instance_count,
            "availability_zone": availability_zone,
            "instance_platform": instance_platform,
            "placement_group": placement_group,
        }
        self._control("capacity-reservations", {**self._place, **_given(request)})

    def add_zone(self, availability_zone: str) -> None:
        """Add an Availability Zone or Local Zone to the region, unless it is there.

        Args:
            availability_zone: The zone's name, such as "us-east-1-bos-1a".
        """
        self._control("zone", {"region": self.region, "availability_zone": availability_zone})

    def add_instance_type(self, description: Mapping[str, Any]) -> bool:
        """Make a type known to EC2, unless it is, and say whether it was unknown.

        Args:
            description: The type in the words of DescribeInstanceTypes.
        """
        return bool(self._control("instance-type", description)["added"])

    def add_image(
        self,
        image_id: str,
        *,
        architecture: str,
        root_device_name: str,
        platform: str | None = None,
        root_device_type: str | None = None,
        encrypted: bool = False,
    ) -> None:
        """Make an image with an id of the caller's, as if another account had built and shared it.

        Args:
            image_id: The id, such as "ami-0a1b2c3d4e5f67890".
            architecture: "x86_64" or "arm64".
            root_device_name: Such as "/dev/xvda".
            platform: What it is billed as, such as "Ubuntu Pro". Default: - Linux/UNIX
            root_device_type: "ebs" or "instance-store". Default: ebs
            encrypted: Whether the snapshot of its root volume is. Default: - it is not.
        """
        request = {
            "image_id": image_id,
            "architecture": architecture,
            "root_device_name": root_device_name,
            "platform": platform,
            "root_device_type": root_device_type,
            "encrypted": encrypted,
        }
        self._control("image", {**self._place, **_given(request)})

    def add_network(self, *, vpc_id: str, subnet_id: str, availability_zone: str) -> None:
        """Make a VPC of 10.0.0.0/16 and, in its upper half, a subnet, with ids of the caller's.

        Args:
            vpc_id: The VPC's id.
            subnet_id: The subnet's id.
            availability_zone: The zone that the subnet is in.
        """
        request = {"vpc_id": vpc_id, "subnet_id": subnet_id, "availability_zone": availability_zone}
        self._control("network", {**self._place, **request})

    def add_eks_cluster(
        self,
        name: str,
        *,
        subnet_ids: Sequence[str],
        security_group_id: str,
        version: str = "1.34",
        authentication_mode: str = "API_AND_CONFIG_MAP",
        status: str = "ACTIVE",
        add_ons: Sequence[str] = (),
    ) -> None:
        """Make an EKS cluster whose cluster security group has an id of the caller's.

        Args:
            name: Its name.
            subnet_ids: The subnets of its control plane, in two zones.
            security_group_id: The id of its cluster security group.
            version: Its Kubernetes version. Default: 1.34
            authentication_mode: Its authentication mode. Default: API_AND_CONFIG_MAP
            status: Its status. Default: ACTIVE
            add_ons: The names of its add-ons. Default: - none
        """
        request = {
            "name": name,
            "subnet_ids": subnet_ids,
            "security_group_id": security_group_id,
            "version": version,
            "authentication_mode": authentication_mode,
            "status": status,
            "add_ons": add_ons,
        }
        self._control("eks-cluster", {**self._place, **request})

    def add_layer(self, arn: str) -> None:
        """Publish a version of a Lambda layer, without contents, to this account.

        Args:
            arn: Its ARN, with the version at the end.
        """
        self._control("layer", {"arn": arn})

    def add_key(self, arn: str, policy: str) -> None:
        """Make a KMS key.

        Args:
            arn: Its ARN.
            policy: Its policy, as JSON.
        """
        self._control("key", {"arn": arn, "policy": policy})

    @property
    def _place(self) -> Mapping[str, str]:
        return {"account": self.account, "region": self.region}

    def _control(self, name: str, body: Mapping[str, Any]) -> Any:
        request = urllib.request.Request(  # noqa: S310 - always http to localhost
            f"{self.endpoint_url}/local-aws/{name}",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method="PUT",
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=_START_SECONDS) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            raise LocalAwsError(json.load(error)["error"]) from error

    def _announced_port(self, process: subprocess.Popen[bytes]) -> int:
        stdout: IO[bytes] | None = process.stdout
        assert stdout is not None  # noqa: S101 - a pipe was asked for
        ready, _, _ = select.select([stdout], [], [], _START_SECONDS)
        line = stdout.readline() if ready else b""
        if not line:
            said = self.log.read_text(errors="replace").split("\n")
            last = next((line for line in reversed(said) if line.strip()), "it said nothing")
            raise LocalAwsError(f"the local AWS did not start: {last}; see {self.log}")
        return int(json.loads(line)["port"])

    def _stop(self) -> None:
        process, self._process, self._port = self._process, None, None
        self._clients.clear()
        if process is None:
            return
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.terminate()
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _given(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a request gives, without what it leaves to the server."""
    return {name: value for name, value in request.items() if value is not None}
