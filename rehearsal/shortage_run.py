"""Lets EC2 run short of nodes, deploys a changed template all the same, and starts nodes after a suspension."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from local_aws import LocalAws
from local_aws.functions import DeployedFunction, FunctionFailedError
from rehearsal.cdk_cli import CdkCli
from rehearsal.node_groups import ON_DEMAND

_NOW, _MINUTE = timedelta(), timedelta(minutes=1)
# How long launches fail until the power function lowers a group, and how often it then asks for nodes again.
_GRACE, _RETRY_EVERY = timedelta(minutes=11), timedelta(minutes=10)
_ROOT_VOLUME_GIB = 600


def group_to_shorten(groups: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the first node group that is bought on demand, of which EC2 can run short. None: there is none."""
    found = (one for one in groups if one["auto_scaling_group"] and set(one["bought_from"]) == {ON_DEMAND})
    return next(found, None)


def changed_file(cdk: CdkCli, workspace: Path) -> CdkCli:
    """Return the CLI for the same cluster with another launch template in each node group."""
    data = yaml.safe_load(cdk.cluster_file.read_text(encoding="utf-8"))
    for group in data["node_groups"]:
        group["root_volume_gib"] = group.get("root_volume_gib", _ROOT_VOLUME_GIB) + 1
        # A script has to lie beside the file that names it.
        for key in ("scripts_before", "scripts_after"):
            group.pop(key, None)
    file = workspace / "changed.yaml"
    file.write_text(json.dumps(data, default=lambda moment: moment.isoformat()), encoding="utf-8")
    return replace(cdk, cluster_file=file, output=workspace / "changed.out")


class Shortage:
    """A node that is lost while EC2 has no other, and what the power function makes of that."""

    def __init__(self, aws: LocalAws, power: DeployedFunction, order_name: str, group: Mapping[str, Any]) -> None:
        """Prepare it; nothing is lost yet.

        Args:
            aws: The local AWS.
            power: The deployed power function.
            order_name: What the stack says that orders are sent to.
            group: The node group that loses the node, as it was read back.
        """
        self._aws, self._power, self._order_name, self._group = aws, power, order_name, group
        self._later = _NOW
        node = group["instance_ids"][0]
        reservations = aws.client("ec2").describe_instances(InstanceIds=[node])["Reservations"]
        self._node = reservations[0]["Instances"][0]
        self.told: dict[str, Mapping[str, Any]] = {}
        """What the power function said of the node group, by what happened before."""

    def begin(self) -> None:
        """Lose a node, and let the power function find that no other comes."""
        self._set_capacity(0)
        self._aws.client("autoscaling").terminate_instance_in_auto_scaling_group(
            InstanceId=self._node["InstanceId"], ShouldDecrementDesiredCapacity=False
        )
        self._call("lost", "tick")
        self._call("lowered", "tick", after=_GRACE)

    def end(self) -> None:
        """Let EC2 have nodes again, and the power function ask for them."""
        self._call("deployed", "tick")
        self._set_capacity(None)
        self._call("raised", "tick", after=_RETRY_EVERY)
        self._call("whole", "tick", after=_MINUTE)
        self._later = _NOW

    def suspend_and_start(self) -> None:
        """Stop the group, let Auto Scaling suspend its launches, and start it."""
        self._call("stopped", "stop")
        self._aws.suspend_launching(self._group["auto_scaling_group"])
        self._call("started", "start")
        self._call("resumed", "tick")

    def differences(self) -> Iterator[str]:
        """Say what is not as it has to be: of its goal the power function never loses sight."""
        count = self._group["count_running"]
        if count > 1 and self.told["whole"]["problem"] != "mixed-versions":
            yield f"node group {self._group['name']}: no message named nodes of two launch template versions"
        for moment, desired, running in (
            ("lost", count, count - 1),
            ("lowered", count - 1, count - 1),
            ("deployed", count - 1, count - 1),
            ("whole", count, count),
            ("stopped", 0, 0),
            ("resumed", count, count),
        ):
            said, wanted = self.told[moment], 0 if moment == "stopped" else count
            found = tuple(said[key] for key in ("wanted", "desired", "missing"))
            # The node that came back was launched from the changed template; a start renews all.
            if said["problem"] == "mixed-versions" and (moment != "whole" or count == 1):
                yield f"node group {said['node_group']}, {moment}: {said['reason']}"
            if found != (wanted, desired, wanted - running):
                yield (
                    f"node group {said['node_group']}, {moment}: {found} nodes were wanted, desired and missing, not "
                    f"{(wanted, desired, wanted - running)}: {said['reason']}"
                )

    def _set_capacity(self, available: int | None) -> None:
        zone = self._node["Placement"]["AvailabilityZone"]
        self._aws.set_capacity(self._node["InstanceType"], zone, available=available)

    def _call(self, moment: str, action: str, *, after: timedelta = _NOW) -> None:
        self._later += after
        said = self._power({"action": action}, later=self._later) if action == "tick" else self._order(action)
        self.told[moment] = next(one for one in said["node_groups"] if one["node_group"] == self._group["name"])

    def _order(self, action: str) -> Any:
        """Order something as operators do: through Lambda, by the name that the stack's output gives."""
        self._aws.set_clock(self._later)
        event = {"action": action, "node_groups": [self._group["name"]]}
        answer = self._aws.client("lambda").invoke(FunctionName=self._order_name, Payload=json.dumps(event))
        self._aws.set_clock(_NOW)
        said = json.loads(answer["Payload"].read())
        if "FunctionError" in answer:
            raise FunctionFailedError(f"{action} through {self._order_name} failed: {said}")
        return said
