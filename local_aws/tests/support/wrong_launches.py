"""A table of node groups that EC2 or Auto Scaling refuses at the deployment, by what their launches lack."""

from local_aws_scene import imported, interface
from template_changes import Change, both, launch, mixed, properties

PRIMARY = interface(0, 0, "interface")

# id, the change that makes the template wrong, and words of the reason that the group fails for.
WRONG_LAUNCHES: list[tuple[str, Change, str]] = [
    # Interfaces
    (
        "efa-only as the primary",
        launch(NetworkInterfaces=[interface(0, 0, "efa-only")]),
        "(EC2 error code: InvalidParameterCombination)",
    ),
    (
        "EFA on a type without it",
        launch(InstanceType="g5.xlarge", NetworkInterfaces=[interface(0, 0, "efa")]),
        "g5.xlarge instances do not support Elastic Fabric Adapters. (EC2 error code: InvalidParameterCombination)",
    ),
    (
        "EFA on a card that has none",
        launch(InstanceType="p6-b300.48xlarge", NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only")]),
        "(EC2 error code: AttachmentLimitExceeded)",
    ),
    (
        "more EFA than the type has",
        launch(
            InstanceType="i7ie.48xlarge",
            NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only"), interface(1, 0, "efa-only")],
        ),
        "EFA interfaces count 2 exceeds allowed limit for i7ie.48xlarge: 1 (EC2 error code: AttachmentLimitExceeded)",
    ),
    (
        "a card that is not there",
        launch(NetworkInterfaces=[PRIMARY, interface(4, 0, "efa-only")]),
        "The specified number '4' for the network card index",
    ),
    (
        "more interfaces than a card has",
        launch(InstanceType="hpc6id.32xlarge", NetworkInterfaces=[PRIMARY, interface(0, 1, "efa-only")]),
        "(EC2 error code: AttachmentLimitExceeded)",
    ),
    (
        "a device that a card has not",
        launch(InstanceType="p5.48xlarge", NetworkInterfaces=[PRIMARY, interface(1, 7, "efa-only")]),
        "The specified number '7' for the device index exceeds the maximum number of network interfaces",
    ),
    (
        "a device twice",
        launch(NetworkInterfaces=[PRIMARY, PRIMARY]),
        "Each network interface requires a unique device index.",
    ),
    (
        "no primary interface",
        launch(NetworkInterfaces=[interface(1, 0, "efa")]),
        "you must include a device at index 0 and network card at index 0",
    ),
    (
        "a public address with several",
        launch(NetworkInterfaces=[PRIMARY | {"AssociatePublicIpAddress": True}, interface(0, 1, "efa-only")]),
        "associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.",
    ),
    (
        "security groups at both levels",
        launch(SecurityGroupIds=[imported("Group")]),
        "When a network interface is provided, the security groups must be a part of it.",
    ),
    (
        "a subnet in an interface",
        launch(NetworkInterfaces=[PRIMARY | {"SubnetId": imported("Subnet")}]),
        "the group's VPCZoneIdentifier decides",
    ),
    (
        "a security group that is not there",
        launch(NetworkInterfaces=[PRIMARY | {"Groups": ["sg-0123456789abcdef0"]}]),
        "The security group 'sg-0123456789abcdef0' does not exist (EC2 error code: InvalidGroup.NotFound)",
    ),
    # The rest of a launch
    (
        "an image that is not there",
        launch(ImageId="ami-0123456789abcdef0"),
        "(EC2 error code: InvalidAMIID.NotFound)",
    ),
    ("no image id", launch(ImageId="the newest"), "(EC2 error code: InvalidAMIID.Malformed)"),
    (
        "a parameter with no image",
        launch(ImageId="resolve:ssm:/nothing"),
        "Parameter /nothing does not exist",
    ),
    (
        "an image of another architecture",
        launch(InstanceType="g5g.xlarge", NetworkInterfaces=None),
        "'arm64' of the specified instance type does not match the architecture 'x86_64' of the specified AMI.",
    ),
    (
        "a type that EC2 does not know",
        launch(InstanceType="p9.48xlarge"),
        "Invalid value 'p9.48xlarge' for InstanceType. (EC2 error code: InvalidParameterValue)",
    ),
    (
        "a cluster placement group for t3",
        launch(InstanceType="t3.micro", NetworkInterfaces=None),
        "Cluster placement groups are not supported by the 't3.micro' instance type.",
    ),
    (
        "a placement group that is not there",
        properties("Nodes", PlacementGroup="none"),
        "The Placement Group 'none' is unknown. (EC2 error code: InvalidPlacementGroup.Unknown)",
    ),
    (
        "too much user data",
        launch(UserData={"Fn::Base64": "x" * 16385}),
        "User data is limited to 16384 bytes",
    ),
    (
        "an instance profile that is not there",
        launch(IamInstanceProfile={"Name": "none"}),
        "Invalid IAM Instance Profile name",
    ),
    (
        "Spot in a mixed group's template",
        both(launch(InstanceMarketOptions={"MarketType": "spot"}), mixed),
        "when you configure an Auto Scaling group with a mixed instances policy.",
    ),
    (
        "Spot for a type that has none",
        launch(
            InstanceType="hpc6id.32xlarge", NetworkInterfaces=[PRIMARY], InstanceMarketOptions={"MarketType": "spot"}
        ),
        "does not support the market type 'spot'",
    ),
    (
        "sizes the wrong way round",
        properties("Nodes", MinSize="5"),
        "Max bound, 4, must be greater than or equal to min bound, 5",
    ),
    (
        "more desired than allowed",
        properties("Nodes", DesiredCapacity="5"),
        "Desired capacity:5 must be between the specified min size:0 and max size:4",
    ),
    (
        "a subnet that is not there",
        properties("Nodes", VPCZoneIdentifier=["subnet-0123456789abcdef0"]),
        "subnet-0123456789abcdef0",
    ),
]
