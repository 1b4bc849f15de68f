"""What a launch template has to say, and may not say, to each service that launches nodes from it."""

from dataclasses import dataclass
from enum import Enum


class UserDataForm(Enum):
    """How a launch template writes user data."""

    SHELL = "shell"
    """One shell script."""

    MULTIPART = "multipart"
    """A MIME multi-part archive, to which the service adds parts of its own."""


@dataclass(frozen=True, kw_only=True)
class LaunchTemplateDialect:
    """Say how the launch templates for one service differ from those of others.

    The market and the id of a Capacity Block stand in all of them, and so does the cluster's security group on each
    network interface.

    Attributes:
        instance_type: Whether the template names the instance type. One with a Capacity Block always does.
        instance_profile: Whether it names the instance profile.
        image: Whether it names the image.
        root_device_name: The device name of the root volume in the service's own images. Default: - that of the image
            that the template names.
        resolves_image: Whether the service takes an image that only a launch finds (`resolve:ssm:…`).
        subnet: Whether its network interfaces name the subnet.
        first_card: Whether its network interfaces on card 0 say so.
        placement_group: Whether it names the placement group.
        reservation: Whether it names the On-Demand Capacity Reservation: by its id, so that EC2 launches nothing
            beyond it, or by a resource group where there are several.
        user_data: The form of its user data.
        metadata_hops: How many network hops the instance metadata service answers over.
    """

    instance_type: bool = True
    instance_profile: bool = True
    image: bool = True
    root_device_name: str | None = None
    resolves_image: bool = True
    subnet: bool = False
    first_card: bool = True
    placement_group: bool = True
    reservation: bool = True
    user_data: UserDataForm = UserDataForm.SHELL
    # Containers reach the metadata service through one hop more than the node itself.
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-options.html
    metadata_hops: int = 2


# The group names subnet, placement group and reservations.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/create-launch-template.html
AUTO_SCALING = LaunchTemplateDialect(placement_group=False, reservation=False)

# A Spot Fleet could name the subnet in its overrides only, as the instance's, which EC2 refuses beside interfaces.
# Card 0 is the default, and older Spot requests take no number of a card.
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html (SubnetId)
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceNetworkInterfaceSpecification.html
SPOT_FLEET = LaunchTemplateDialect(subnet=True, first_card=False, resolves_image=False, reservation=False)

# The compute node group names types, profile, subnet and, before the template, the image. Through a resource group of
# reservations, PCS would launch On-Demand Instances at the full price beyond them.
# https://docs.aws.amazon.com/pcs/latest/userguide/working-with_launch-templates.html
# https://docs.aws.amazon.com/pcs/latest/userguide/capacity-reservations-odcr.html
PCS = LaunchTemplateDialect(
    instance_type=False,
    instance_profile=False,
    root_device_name="/dev/sda1",
    user_data=UserDataForm.MULTIPART,
)

# The node group names types, role and subnets; a template with a subnet or a profile is refused.
# https://docs.aws.amazon.com/eks/latest/userguide/launch-templates.html
EKS = LaunchTemplateDialect(
    instance_type=False,
    instance_profile=False,
    root_device_name="/dev/xvda",
    user_data=UserDataForm.MULTIPART,
    # Pods get no credentials of the node: https://docs.aws.amazon.com/eks/latest/best-practices/identity-and-access-management.html
    metadata_hops=1,
)

# The compute environment names types, profile, subnets and placement group; Batch ignores them in a template.
# https://docs.aws.amazon.com/batch/latest/userguide/launch-templates.html
BATCH = LaunchTemplateDialect(
    instance_type=False,
    instance_profile=False,
    placement_group=False,
    user_data=UserDataForm.MULTIPART,
    # Batch names the image, but for the user's own.
    image=False,
    root_device_name="/dev/xvda",
)
