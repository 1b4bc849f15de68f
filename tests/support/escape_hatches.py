"""What the tables of changes to a legal template share: where things are, and what stands there."""

from typing import Any

Changes = dict[str, Any]
"""What is put where: a resource, or a property by its path. `ABSENT` takes it away."""

ABSENT = None
PARAMETER = {"Ref": "Parameter"}
IMPORT = {"Fn::ImportValue": "elsewhere"}
CONDITION = {"Fn::If": ["Production", "a", {"Ref": "AWS::NoValue"}]}
NO_VALUE = {"Ref": "AWS::NoValue"}

CONFIG = "Fleet.SpotFleetRequestConfigData"
DATA = "Launch.LaunchTemplateData"
TARGET = f"{DATA}.CapacityReservationSpecification.CapacityReservationTarget"
RESERVED = "Nodes.CapacityReservationSpecification"
IDS = f"{RESERVED}.CapacityReservationTarget.CapacityReservationIds"
ARNS = f"{RESERVED}.CapacityReservationTarget.CapacityReservationResourceGroupArns"
SHARES = "Nodes.MixedInstancesPolicy.InstancesDistribution"
SPOT_SHARE = f"{SHARES}.OnDemandPercentageAboveBaseCapacity"
SEGMENTS = f"{SHARES}.DistributionSegments"
KINDS = f"{SEGMENTS}.0.TargetCapacityTypes"
NAMED = {"LaunchTemplateId": {"Ref": "Launch"}, "Version": "1"}
TRUST = "AssumeRolePolicyDocument"
WARM = {
    "Type": "AWS::AutoScaling::WarmPool",
    "Properties": {"AutoScalingGroupName": {"Ref": "Nodes"}, "MaxGroupPreparedCapacity": 1},
}
POOL_CONFIGURATION = "Pool.Configuration"
SUBNET = {"Type": "AWS::EC2::Subnet", "Properties": {"AvailabilityZone": "us-east-1b"}}
