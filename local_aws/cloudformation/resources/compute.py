"""Launch templates, placement groups and Auto Scaling groups."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    picked,
    wait_for_termination,
)
from local_aws.cloudformation.resources.regular import Regular
from local_aws.services.auto_scaling import tagged_by_stack

_SIZES = ("MinSize", "MaxSize", "DesiredCapacity")
# What UpdateAutoScalingGroup takes for a setting that shall be there no longer.
_UNSET = {"PlacementGroup": "", "CapacityReservationSpecification": {"CapacityReservationPreference": "default"}}


class _LaunchTemplate(Regular):
    """A template of which every change is a new version."""

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        # A change of the template's own tags is taken, and leaves them as they were:
        # https://github.com/aws-cloudformation/cloudformation-coverage-roadmap/issues/1873
        self.only_changed(properties, before, "LaunchTemplateData", "TagSpecifications", "VersionDescription")
        version = call.client("ec2").create_launch_template_version(
            LaunchTemplateId=call.physical_id,
            LaunchTemplateData=properties["LaunchTemplateData"],
            **picked(properties, "VersionDescription"),
        )["LaunchTemplateVersion"]
        return {"LatestVersionNumber": str(version["VersionNumber"])}


class AutoScalingGroup(Handler):
    """A group that updates change in place, as CloudFormation does, sizes by its UpdatePolicy.

    An update that changes anything of a group waits for its nodes, for up to an hour; here it fails at once where
    they are not there, and so does the rollback, which is such an update.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-autoscaling-autoscalinggroup.html
    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
    https://repost.aws/knowledge-center/auto-scaling-group-not-stabilize-error
    """

    type = "AWS::AutoScaling::AutoScalingGroup"
    _same = (
        "AvailabilityZones",
        "CapacityRebalance",
        "CapacityReservationSpecification",
        "DefaultInstanceWarmup",
        "DesiredCapacityType",
        "HealthCheckGracePeriod",
        "HealthCheckType",
        "LaunchTemplate",
        "MixedInstancesPolicy",
        "NewInstancesProtectedFromScaleIn",
        "PlacementGroup",
        "TerminationPolicies",
    )
    supported = frozenset({*_same, *_SIZES, "AutoScalingGroupName", "Tags", "VPCZoneIdentifier"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("AutoScalingGroupName") or call.physical_name()
        tags = [_group_tag(name, tag) for tag in properties.get("Tags") or []]
        autoscaling = call.client("autoscaling")
        with tagged_by_stack(call.region, name, call.stack_tags):
            autoscaling.create_auto_scaling_group(
                AutoScalingGroupName=name,
                **self._settings(properties),
                **self._sizes(properties),
                **({"Tags": tags} if tags else {}),
            )
        call.made(name)
        self._wait(call)
        group = self._group(call)
        return {"AutoScalingGroupARN": group["AutoScalingGroupARN"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        policy = call.definition.get("UpdatePolicy") or {}
        ignored = (policy.get("AutoScalingScheduledAction") or {}).get("IgnoreUnmodifiedGroupSizeProperties")
        # The setting is ignored during a rollback.
        ignored = str(ignored).lower() == "true" and not call.rolling_back
        sizes = {
            name: size
            for name, size in self._sizes(properties).items()
            if not ignored or properties.get(name) != before.get(name)
        }
        gone = {name: unset for name, unset in _UNSET.items() if name in before and name not in properties}
        call.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=call.physical_id, **self._settings(properties), **gone, **sizes
        )
        self._retag(call, properties, before)
        self._wait(call)
        return {}

    def delete(self, call: Call) -> None:
        call.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=call.physical_id, ForceDelete=True)
        wait_for_termination(call, "aws:autoscaling:groupName")

    def _settings(self, properties: Properties) -> dict[str, Any]:
        settings = picked(properties, *self._same)
        if "VPCZoneIdentifier" in properties:
            settings["VPCZoneIdentifier"] = ",".join(properties["VPCZoneIdentifier"])
        return settings

    @staticmethod
    def _sizes(properties: Properties) -> dict[str, int]:
        return {name: int(size) for name, size in picked(properties, *_SIZES).items()}

    @staticmethod
    def _retag(call: Call, properties: Properties, before: Properties) -> None:
        autoscaling, name = call.client("autoscaling"), call.physical_id
        old, new = before.get("Tags") or [], properties.get("Tags") or []
        put = [_group_tag(name, tag) for tag in new if tag not in old]
        gone = {tag["Key"] for tag in old} - {tag["Key"] for tag in new}
        if put:
            autoscaling.create_or_update_tags(Tags=put)
        if gone:
            autoscaling.delete_tags(Tags=[_group_tag(name, {"Key": key}) for key in sorted(gone)])

    @staticmethod
    def _group(call: Call) -> Any:
        answer = call.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[call.physical_id])
        return answer["AutoScalingGroups"][0]

    def _wait(self, call: Call) -> None:
        """Fail if the group did not reach its size: CloudFormation waits for it until it gives up."""
        group = self._group(call)
        running = sum(instance["LifecycleState"] == "InService" for instance in group["Instances"])
        if running >= group["DesiredCapacity"]:
            return
        activities = call.client("autoscaling").describe_scaling_activities(
            AutoScalingGroupName=call.physical_id, MaxRecords=1
        )["Activities"]
        last = activities[0].get("StatusMessage", activities[0]["Description"]) if activities else "none"
        raise HandlerError(
            f"Group did not stabilize. {{current/minSize/maxSize/desired: {running}/{group['MinSize']}/"
            f"{group['MaxSize']}/{group['DesiredCapacity']}}}. Last scaling activity: {last}",
            "NotStabilized",
        )


def _group_tag(name: str, tag: Mapping[str, Any]) -> dict[str, Any]:
    return {"ResourceId": name, "ResourceType": "auto-scaling-group", **tag}


HANDLERS: tuple[Handler, ...] = (
    _LaunchTemplate(
        type="AWS::EC2::LaunchTemplate",
        service="ec2",
        create_with=Action("create_launch_template", "LaunchTemplateData TagSpecifications VersionDescription"),
        delete_with=Action("delete_launch_template", id="LaunchTemplateId"),
        named="LaunchTemplateName:LaunchTemplateName",
        name_limit=128,
        made="LaunchTemplate",
        id="LaunchTemplateId",
        attributes={
            "LatestVersionNumber": "to_string(LatestVersionNumber)",
            "DefaultVersionNumber": "to_string(DefaultVersionNumber)",
        },
        can_tag=False,
    ),
    Regular(
        type="AWS::EC2::PlacementGroup",
        service="ec2",
        create_with=Action("create_placement_group", "PartitionCount SpreadLevel Strategy"),
        delete_with=Action("delete_placement_group", id="GroupName"),
        named=":GroupName",
        made="PlacementGroup",
        tag_kind="placement-group",
    ),
    AutoScalingGroup(),
)
