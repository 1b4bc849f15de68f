"""Which texts of a template have a row in the table of documented limits, and which are no free texts."""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from cdk_training_cluster.validation import LIMITS
from cdk_training_cluster.validation.templates.texts import is_intrinsic

# By the reason: texts that are not this library's wording, such as AWS's own words, ids, ARNs and numbers.
NOT_FREE: Mapping[str, tuple[str, ...]] = {
    "AWS's own words, which its schemas list": (
        "AWS::*.AllocationStrategy",
        "AWS::*.CapacityReservationPreference",
        "AWS::*.ResourceType",
        "AWS::*.SSEAlgorithm",
        "AWS::*.VolumeType",
        "AWS::AutoScaling::*AllocationStrategy",
        "AWS::AutoScaling::*.TargetCapacityTypes.*",
        "AWS::AutoScaling::AutoScalingGroup TerminationPolicies.*",
        "AWS::AutoScaling::LifecycleHook DefaultResult",
        "AWS::AutoScaling::LifecycleHook LifecycleTransition",
        "AWS::AutoScaling::WarmPool PoolState",
        "AWS::Budgets::Budget Budget.*Type",
        "AWS::Budgets::Budget Budget.*Unit",
        "AWS::Budgets::Budget NotificationsWithSubscribers.*.Notification.*",
        "AWS::Budgets::Budget NotificationsWithSubscribers.*.SubscriptionType",
        "AWS::CloudWatch::Alarm ComparisonOperator",
        "AWS::CloudWatch::Alarm Metrics.*.MetricStat.Stat",
        "AWS::CloudWatch::Alarm Statistic",
        "AWS::CloudWatch::Alarm TreatMissingData",
        "AWS::DynamoDB::Table *.AttributeType",
        "AWS::DynamoDB::Table *.KeyType",
        "AWS::DynamoDB::Table BillingMode",
        "AWS::DynamoDB::Table SSESpecification.SSEType",
        "AWS::EC2::CapacityReservation EndDateType",
        "AWS::EC2::CapacityReservation InstanceMatchCriteria",
        "AWS::EC2::CapacityReservation InstancePlatform",
        "AWS::EC2::CapacityReservation Tenancy",
        "AWS::EC2::EIP Domain",
        "AWS::EC2::FlowLog *",
        "AWS::EC2::LaunchTemplate *.HttpTokens",
        "AWS::EC2::LaunchTemplate *.InterfaceType",
        "AWS::EC2::LaunchTemplate *.MarketType",
        "AWS::EC2::PlacementGroup Strategy",
        "AWS::EC2::SpotFleet *.ExcessCapacityTerminationPolicy",
        "AWS::EC2::SpotFleet *.InstanceInterruptionBehavior",
        "AWS::EC2::SpotFleet *.Type",
        "AWS::EC2::VPCEndpoint VpcEndpointType",
        "AWS::EKS::AccessEntry AccessPolicies.*.AccessScope.Type",
        "AWS::EKS::Addon AddonName",
        "AWS::EKS::Addon ResolveConflicts",
        "AWS::EKS::Cluster *Mode",
        "AWS::EKS::Cluster *Type",
        "AWS::EKS::Cluster KubeSchedulerConfig.*.Name",
        "AWS::EKS::Cluster KubernetesNetworkConfig.IpFamily",
        "AWS::EKS::Nodegroup *Type",
        "AWS::EKS::Nodegroup NodeRepairConfig.*",
        "AWS::EKS::Nodegroup Taints.*.Effect",
        "AWS::EKS::Nodegroup UpdateConfig.UpdateStrategy",
        "AWS::EKS::PodIdentityAssociation ClusterName",
        "AWS::Events::Rule State",
        "AWS::FSx::*.Events.*",
        "AWS::FSx::FileSystem FileSystemType*",
        "AWS::FSx::FileSystem LustreConfiguration.*",
        "AWS::FSx::FileSystem StorageType",
        "AWS::Lambda::Function Architectures.*",
        "AWS::Lambda::Function Runtime",
        "AWS::Lambda::Permission *",
        "AWS::Logs::DeliverySource LogType",
        "AWS::PCS::Cluster *Mode",
        "AWS::PCS::Cluster Scheduler.*",
        "AWS::PCS::Cluster Size",
        "AWS::PCS::ComputeNodeGroup PurchaseOption",
        "AWS::S3::Bucket *.Status",
        "AWS::SNS::Subscription Protocol",
        "AWS::SageMaker::Cluster *Mode",
        "AWS::SageMaker::Cluster *NodeType",
        "AWS::SageMaker::Cluster *OnStartDeepHealthChecks.*",
        "AWS::SageMaker::Cluster NodeRecovery",
        "AWS::SageMaker::ClusterSchedulerConfig SchedulerConfig.FairShare",
        "AWS::ResourceGroups::Group Configuration.*",
        "AWS::SSM::Document DocumentFormat",
        "AWS::SSM::Document DocumentType",
        "AWS::SSM::Document UpdateMethod",
        "AWS::SSM::Parameter Tier",
        "AWS::SSM::Parameter Type",
        "AWS::Scheduler::Schedule FlexibleTimeWindow.Mode",
    ),
    "names that the library itself gives": (
        "AWS::EC2::CapacityReservation OnIdle",
        "AWS::Budgets::Budget Budget.CostFilters.TagKeyValue.*",
        "AWS::DynamoDB::Table *.AttributeName",
        "AWS::EKS::Addon PodIdentityAssociations.*.ServiceAccount",
        "AWS::EKS::Nodegroup Labels.*",
        "AWS::EKS::PodIdentityAssociation ServiceAccount",
        "AWS::EKS::Nodegroup Taints.*",
        "AWS::Logs::Delivery* *Name",
        "AWS::SageMaker::Cluster *LifeCycleConfig.*",
        "AWS::SageMaker::Cluster *MountPath",
    ),
    "ids, ARNs, zones, types, addresses and times, whose form is checked where they are given": (
        "AWS::*Arn",
        "AWS::*CidrBlock",
        "AWS::*CidrIp",
        "AWS::*IpProtocol",
        "AWS::*AvailabilityZone",
        "AWS::*InstanceType",
        "AWS::*ReservationId",
        "AWS::*VpcId",
        "AWS::*KeyId",
        "AWS::*KeyID",
        "AWS::AutoScaling::AutoScalingGroup VPCZoneIdentifier.*",
        "AWS::EC2::LaunchTemplate *.DeviceName",
        "AWS::EC2::LaunchTemplate *.ImageId",
        "AWS::Lambda::Alias FunctionVersion",
        "AWS::EC2::VPCEndpoint ServiceName",
        "AWS::EKS::* *Version",
        "AWS::EKS::Cluster KubernetesNetworkConfig.ServiceIpv4Cidr",
        "AWS::EKS::Nodegroup InstanceTypes.*",
        "AWS::EKS::PodIdentityAssociation Namespace",
        "AWS::IAM::Role ManagedPolicyArns.*",
        "AWS::Lambda::EventInvokeConfig *",
        "AWS::Lambda::Function Layers.*",
        "AWS::ResourceGroups::Group Resources.*",
        "AWS::SageMaker::Cluster *ImageId",
        "AWS::SageMaker::Cluster VpcConfig.*",
    ),
    "numbers as text": (
        "AWS::AutoScaling::AutoScalingGroup M??Size",
        "AWS::AutoScaling::AutoScalingGroup *.SpotMaxPrice",
        "AWS::EC2::CapacityReservation ServiceTimeout",
        "AWS::EC2::SpotFleet *.SpotPrice",
    ),
    "names that CDK makes of hashes": ("AWS::Lambda::Function Code.*", "AWS::Lambda::Function Handler"),
    "policies and patterns, which are JSON of the library's own": (
        "AWS::*PolicyDocument*",
        "AWS::Events::Rule EventPattern.*",
    ),
    "what the settings' own rules check, and containers and commands, of which AWS documents no limit": (
        "AWS::Batch::ComputeEnvironment *",
        "AWS::Batch::JobDefinition *",
        "AWS::Batch::JobQueue *",
        "AWS::Batch::SchedulingPolicy *",
        "AWS::EKS::Cluster Name",
        "AWS::PCS::* Name",
        "AWS::PCS::* SlurmConfiguration.*",
        "AWS::SageMaker::Cluster *Name",
        "AWS::SageMaker::Cluster *PartitionNames.*",
        "AWS::SageMaker::ClusterSchedulerConfig *Name",
    ),
    "a program": ("AWS::EC2::LaunchTemplate *.UserData",),
    "rate(…), written by the library": ("AWS::Scheduler::Schedule ScheduleExpression",),
    "constant JSON of the library's own, without a documented length": (
        "AWS::EKS::Addon ConfigurationValues",
        "AWS::Scheduler::Schedule Target.Input",
    ),
    "a runbook's texts: AWS documents no limit but 64 KB for the whole document": ("AWS::SSM::Document Content.*",),
    "a label, a prefix and a dashboard's JSON, for which AWS documents no limit": (
        "AWS::CloudWatch::Dashboard DashboardBody",
        "AWS::CloudWatch::Alarm Metrics.*.Label",
        "AWS::S3::Bucket LoggingConfiguration.LogFilePrefix",
    ),
}


# A type whose texts have the limits of another's.
_ALIKE = {"Custom::CapacityReservation": "AWS::EC2::CapacityReservation"}


def texts_without_a_limit(template: Mapping[str, Any]) -> Iterator[str]:
    """Yield the type and the property of each text that has neither a row nor a reason to have none."""
    rows = [place.partition(" if ")[0] for row in LIMITS.values() for place in row.places]
    keys = {place.removesuffix(".~") for place in rows if place.endswith(".~")}
    free = [pattern for patterns in NOT_FREE.values() for pattern in patterns]
    for resource in template["Resources"].values():
        for path in _texts(resource.get("Properties", {}), ""):
            place = f"{_ALIKE.get(resource['Type'], resource['Type'])} {path}"
            known = any(_is_at(place, row) for row in rows) or any(fnmatchcase(place, each) for each in free)
            if not known and place.rpartition(".")[0] not in keys:
                yield place


def _texts(value: object, path: str) -> Iterator[str]:
    if isinstance(value, str) or (is_intrinsic(value) and {"Fn::Join", "Fn::Sub"} & set(value)):
        yield path
    elif isinstance(value, dict) and not is_intrinsic(value):
        for name, item in value.items():
            yield from _texts(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, f"{path}.*")


def _is_at(place: str, row: str) -> bool:
    """Tell whether a row's place is that of a text: `*` is one step of the path, or the rest of a type."""
    kind, _, path = place.partition(" ")
    of_kind, _, steps = row.partition(" ")
    parts, wanted = path.split("."), steps.split(".")
    return (
        fnmatchcase(kind, of_kind)
        and len(parts) == len(wanted)
        and all(step in {part, "*"} for part, step in zip(parts, wanted, strict=True))
    )
