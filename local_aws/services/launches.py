"""How instances come up: by EC2's rules, with every interface, group, tag and volume that was asked for.

One path for RunInstances and for Auto Scaling, so that what one refuses the other refuses too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.models.block_device import BlockDeviceType
from moto.ec2.models.elastic_block_store import VolumeAttachment
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.instances import Instance, Reservation
from moto.ec2.utils import convert_tag_spec, parse_user_data, random_eni_attach_id, random_reservation_id
from moto.iam.models import iam_backends
from moto.ssm.models import ssm_backends

from local_aws.capacity_rules import exceeded
from local_aws.launch_facts import (
    Ec2Refusal,
    Launch,
    LaunchContext,
    card_of,
    device_of,
    insufficient_addresses,
    type_of,
)
from local_aws.launch_rules import check_launch
from local_aws.services import keys, reserved_launches, resource_groups, spot_requests
from local_aws.services.placement_groups import groups_of
from local_aws.services.reserved_capacity import CapacityReservation, reservations_of

_ROOT_GIB = 8
# What RunInstances has besides launch data.
_REQUEST_ONLY = ("MinCount", "MaxCount", "LaunchTemplate", "DryRun", "ClientToken")


@dataclass(frozen=True, kw_only=True)
class LaunchRequest:
    """A launch: launch data (as in a launch template), where to, how many, and tags on top of the data's.

    A service that launches does so in its service-linked roles, here by the services' names.
    """

    data: Mapping[str, Any]
    subnet_id: str | None
    count: int
    tags: Mapping[str, str]
    roles: Mapping[str, str] = field(default_factory=dict)


def resolved_image(ec2: Any, image: str | None) -> str | None:
    """Return the image id, read from Systems Manager if it is written `resolve:ssm:<parameter>`.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-systems-manager-parameter-to-find-AMI.html
    """
    if not image or not image.startswith("resolve:ssm:"):
        return image
    name = image.removeprefix("resolve:ssm:")
    parameter = ssm_backends[ec2.account_id][ec2.region_name].get_parameter(name)
    if parameter is None:
        raise Ec2Refusal(
            "InvalidParameterValue", f"Parameter {name} does not exist or cannot be read in Systems Manager."
        )
    return str(parameter.value)


def context_of(ec2: Any, data: Mapping[str, Any], subnet_id: str | None, *, room: bool) -> LaunchContext:
    """Collect what a launch's rules ask for from moto's backends.

    Args:
        ec2: moto's EC2 backend of the region.
        data: The launch data.
        subnet_id: The subnet it goes to.
        room: Whether it is launched now: free addresses and reservations count (a trial asks for none).
    """
    wanted = list(data.get("SecurityGroupIds") or [])
    for interface in data.get("NetworkInterfaces") or []:
        wanted += interface.get("Groups") or []
    groups = {name: ec2.get_security_group_from_id(name) for name in wanted}
    image = str(data.get("ImageId"))
    profiles = iam_backends[ec2.account_id][ec2.partition].instance_profiles.values()
    subnet = ec2.get_subnet(subnet_id) if subnet_id else None
    return LaunchContext(
        image_architectures={image: ec2.amis[image].architecture} if image in ec2.amis else {},
        image_platforms={image: _platform(ec2.amis[image])} if image in ec2.amis else {},
        image_volumes={image: _root_volume(ec2.amis[image])} if image in ec2.amis else {},
        security_group_vpcs={name: group.vpc_id for name, group in groups.items() if group},
        placement_groups={name: group.strategy for name, group in groups_of(ec2).items()},
        instance_profiles=frozenset(text for profile in profiles for text in (profile.name, profile.arn)),
        subnet_id=subnet_id,
        subnet_vpc=subnet.vpc_id if subnet else None,
        availability_zone=subnet.availability_zone if subnet else None,
        free_addresses=subnet.available_ip_address_count if subnet and room else None,
        reservations={name: known.facts(ec2) for name, known in reservations_of(ec2).items()},
        reservation_groups=resource_groups.targetable(ec2),
        is_trial=not room,
    )


def _platform(image: Any) -> str:
    """Return an image's platform as a Capacity Reservation spells it."""
    # What moto's images lack.
    return str(getattr(image, "platform_details", "Windows" if image.platform == "windows" else "Linux/UNIX"))


def _root_volume(image: Any) -> tuple[str, int]:
    return str(image.root_device_name), int(image.ebs_snapshot.volume.size)


def check(ec2: Any, data: Mapping[str, Any], subnet_id: str | None, *, room: bool = False) -> Launch:
    """Raise Ec2Refusal if EC2 would refuse the launch; return what it was judged by."""
    data = {**data, "ImageId": resolved_image(ec2, data.get("ImageId"))}
    facts = INSTANCE_TYPES.get(data.get("InstanceType", ""))
    context = context_of(ec2, data, subnet_id, room=room)
    check_launch(data, facts, context)
    return Launch(data, facts, context)


def insufficient_capacity(ec2: Any, instance_type: str, zone: str) -> Ec2Refusal:
    """Return EC2's answer when a zone has no more of a type.

    EC2 answers it with status 500; here it is a 400 like every refusal, or SDKs would retry for a minute.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/troubleshooting-launch.html
    """
    others = ", ".join(other.name for other in ec2.describe_availability_zones() if other.name != zone)
    return Ec2Refusal(
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested "
        f"({zone}). Our system will be working on provisioning additional capacity. You can currently get "
        f"{instance_type} capacity by not specifying an Availability Zone in your request or choosing {others}.",
    )


def launch(ec2: Any, request: LaunchRequest) -> tuple[list[Instance], Ec2Refusal | None]:
    """Launch as many of the instances as the subnet, and the zone or the reservation, have room for.

    Returns:
        The instances, and why there are not more of them if they are fewer than asked for.

    Raises:
        Ec2Refusal: if EC2 would refuse such a launch altogether.
    """
    data = {**request.data, "ImageId": resolved_image(ec2, request.data.get("ImageId"))}
    subnet = ec2.get_subnet(request.subnet_id) if request.subnet_id else _default_subnet(ec2)
    judged = check(ec2, data, subnet.id, room=True)
    keys.check_volumes(ec2, data, request.roles)
    addresses = sum(type_of(i) != "efa-only" for i in data.get("NetworkInterfaces") or []) or 1
    room = min(request.count, subnet.available_ip_address_count // addresses)
    places, unreserved = reserved_launches.places(ec2, judged, room)
    launched = [_launch_one(ec2, data, subnet, request.tags, reservation) for reservation in places]
    if len(places) < room and not unreserved:
        return launched, exceeded(f"It took {len(places)} of {room} instances.")
    if len(places) < room:
        return launched, insufficient_capacity(ec2, data["InstanceType"], subnet.availability_zone)
    if len(places) < request.count:
        return launched, insufficient_addresses(subnet.id)
    return launched, None


def _default_subnet(ec2: Any) -> Any:
    subnets = [subnet for zones in ec2.subnets.values() for subnet in zones.values() if subnet.default_for_az]
    if not subnets:
        raise Ec2Refusal("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
    return min(subnets, key=lambda subnet: str(subnet.availability_zone))


def _launch_one(
    ec2: Any,
    data: Mapping[str, Any],
    subnet: Any,
    tags: Mapping[str, str],
    capacity: CapacityReservation | None,
) -> Instance:
    interfaces = sorted(data.get("NetworkInterfaces") or [{}], key=lambda i: (card_of(i), device_of(i)))
    primary = interfaces[0]
    placement = data.get("Placement") or {}
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType")
    group_ids = primary.get("Groups") or data.get("SecurityGroupIds") or []
    instance = Instance(
        ec2,
        data["ImageId"],
        parse_user_data(str(data["UserData"]) if data.get("UserData") else None),
        [ec2.get_security_group_from_id(group_id) for group_id in group_ids],
        instance_type=data["InstanceType"],
        region_name=ec2.region_name,
        subnet_id=subnet.id,
        nics=[{**primary, "DeviceIndex": 0, "SubnetId": subnet.id, "Groups": []}],
        key_name=data.get("KeyName"),
        ebs_optimized=data.get("EbsOptimized", False),
        metadata_options=data.get("MetadataOptions") or {},
        monitoring_state="enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
        instance_initiated_shutdown_behavior=data.get("InstanceInitiatedShutdownBehavior"),
        disable_api_stop=data.get("DisableApiStop", False),
        disable_api_termination=data.get("DisableApiTermination", False),
        hibernation_options=data.get("HibernationOptions"),
        associate_public_ip=primary.get("AssociatePublicIpAddress"),
    )
    instance.nics[0].interface_type = type_of(primary)
    instance.placement.group_name = placement.get("GroupName", "")
    instance.placement.tenancy = placement.get("Tenancy", "default")
    instance.lifecycle = None if market == "on-demand" else market
    instance.root_device_type = ec2.amis[data["ImageId"]].root_device_type
    instance.capacity_reservation_specification = data.get("CapacityReservationSpecification") or {
        "CapacityReservationPreference": "open"
    }
    instance.capacity_reservation_id = capacity and capacity.id
    instance.capacity_block_id = capacity and capacity.block_id
    instance.iam_instance_profile = _profile(ec2, data)
    for place, interface in enumerate(interfaces[1:], start=1):
        _attach_interface(ec2, instance, place, interface, subnet)

    reservation = Reservation(random_reservation_id(), owner_id=ec2.account_id)
    reservation.instances.append(instance)
    ec2.reservations[reservation.id] = reservation

    tags_of = convert_tag_spec(data.get("TagSpecifications") or [])
    instance.add_tags({**tags_of.get("instance", {}), **tags})
    for interface in instance.nics.values():
        interface.add_tags(tags_of.get("network-interface", {}))
    _attach_volumes(ec2, instance, data.get("BlockDeviceMappings") or [], tags_of.get("volume", {}))
    if market == "spot":
        spot_requests.place(ec2, instance, data)
    return instance


def _profile(ec2: Any, data: Mapping[str, Any]) -> dict[str, str] | None:
    wanted = data.get("IamInstanceProfile") or {}
    for profile in iam_backends[ec2.account_id][ec2.partition].instance_profiles.values():
        if profile.name == wanted.get("Name") or profile.arn == wanted.get("Arn"):
            return {"Arn": profile.arn, "Id": profile.id}
    return None


def _attach_interface(ec2: Any, instance: Any, place: int, interface: Mapping[str, Any], subnet: Any) -> None:
    """Make one more interface and attach it. moto keys interfaces by device index, which repeats on cards."""
    with_address = type_of(interface) != "efa-only"
    created = ec2.create_network_interface(
        subnet,
        subnet.get_available_subnet_ip(instance) if with_address else None,
        device_index=device_of(interface),
        group_ids=interface.get("Groups"),
        description=interface.get("Description"),
        delete_on_termination=interface.get("DeleteOnTermination", False) is True,
    )
    if not with_address:
        created.private_ip_address, created.private_ip_addresses = None, []
        created.private_dns_name = None
    created.interface_type = type_of(interface)
    created.network_card_index = card_of(interface)
    created.instance = instance
    created.attachment_id = random_eni_attach_id()
    created.attach_time = utcnow()
    created.status = "in-use"
    instance.nics[place] = created


def _attach_volumes(ec2: Any, instance: Any, mappings: Sequence[Mapping[str, Any]], tags: Mapping[str, str]) -> None:
    """Attach the root volume and the others, with the settings of the block device mappings."""
    volumes = {instance.root_device_name: {"DeleteOnTermination": True, "VolumeSize": _ROOT_GIB}}
    for mapping in mappings:
        if "Ebs" in mapping:
            known = volumes.get(mapping["DeviceName"], {})
            volumes[mapping["DeviceName"]] = known | {
                name: value for name, value in mapping["Ebs"].items() if value is not None
            }
    for device, settings in volumes.items():
        volume = ec2.create_volume(
            size=settings.get("VolumeSize", _ROOT_GIB),
            zone_name=instance.placement.zone,
            snapshot_id=settings.get("SnapshotId"),
            encrypted=settings.get("Encrypted", False),
            kms_key_id=settings.get("KmsKeyId"),
            volume_type=settings.get("VolumeType"),
            iops=settings.get("Iops"),
            throughput=settings.get("Throughput"),
        )
        volume.add_tags(dict(tags))
        volume.attachment = VolumeAttachment(volume, instance, device, "attached")
        instance.block_device_mapping[device] = BlockDeviceType(
            volume_id=volume.id,
            status=volume.status,
            size=volume.size,
            attach_time=utcnow(),
            delete_on_termination=settings.get("DeleteOnTermination", False),
        )


def launch_template_data(ec2: Any, specification: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the launch template and the version that a specification names (default: $Default).

    Raises:
        ServiceException: EC2's own, if there is no such template or version.
    """
    if specification.get("LaunchTemplateId"):
        template = ec2.get_launch_template(specification["LaunchTemplateId"])
    else:
        template = ec2.get_launch_template_by_name(specification.get("LaunchTemplateName"))
    return template, template.get_version(specification.get("Version") or "$Default")


def run_instances(response: Any) -> ActionResult:
    """Answer RunInstances: its parameters on top of the launch template's data."""
    ec2 = response.ec2_backend
    asked = {name: value for name, value in response._get_params().items() if name not in _REQUEST_ONLY}
    specification = response._get_param("LaunchTemplate")
    tags: dict[str, str] = {}
    if specification:
        template, version = launch_template_data(ec2, specification)
        asked = {**version.data, **asked}
        tags = {
            "aws:ec2launchtemplate:id": template.id,
            "aws:ec2launchtemplate:version": str(version.number),
        }
    interfaces = asked.get("NetworkInterfaces") or []
    if any(interface.get("NetworkInterfaceId") for interface in interfaces):
        raise NotImplementedError("launching with an existing network interface")
    subnets = [interface["SubnetId"] for interface in interfaces if interface.get("SubnetId")]
    subnet_id = asked.get("SubnetId") or (subnets[0] if subnets else None)
    check(ec2, asked, subnet_id, room=True)
    response.error_on_dryrun()
    asked.pop("SubnetId", None)
    minimum = response._get_int_param("MinCount", 1)
    maximum = response._get_int_param("MaxCount", minimum)
    launched, reason = launch(ec2, LaunchRequest(data=asked, subnet_id=subnet_id, count=maximum, tags=tags))
    if reason is not None and len(launched) < minimum:
        if launched:
            ec2.terminate_instances([instance.id for instance in launched])
        raise reason
    answer = Reservation(random_reservation_id(), owner_id=ec2.account_id)
    answer.instances = launched
    return ActionResult(answer)


def attachment_with_its_card(original: property) -> property:
    """Wrap moto's `NetworkInterface.attachment`, which always says network card 0."""

    def attachment(interface: Any) -> Any:
        attached = original.__get__(interface)
        if attached is not None:
            attached.network_card_index = getattr(interface, "network_card_index", 0)
        return attached

    return property(attachment)
