"""The answers to DescribeInstances, stamped out of one instance that moto's own serializer has rendered."""

from collections.abc import Callable, Iterable, Mapping
from html import escape
from typing import Any

from moto.core.serialize import EC2Serializer
from moto.core.utils import get_service_model

from benchmarks.sweep.fleet import INSTANCE_TYPE, Fleet

_ACCOUNT = "123456789012"
_SUBNET = "subnet-0a1b2c3d4e5f60718"
_VPC = "vpc-0a1b2c3d4e5f60718"
_GROUP = {"GroupId": "sg-0a1b2c3d4e5f60718", "GroupName": "base-pod-efa"}

# p5.48xlarge has 32 network cards: each has an interface for EFA, and the first also the one with the address.
_CARDS = 32

_RUNNING = "<code>16</code><name>running</name>"
_STOPPING = "<code>64</code><name>stopping</name>"
_TAGS = "<item><key>tags</key><value>{tags}</value></item>"
_NEXT = "<nextToken>{token}</nextToken>"


class Pages:
    """Writes pages of a fleet's instances: only ids, addresses, states and tags differ, and nothing is kept.

    Args:
        fleet: The fleet.
    """

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._head, rest = _rendered(fleet).split("<reservationSet>")
        self._reservation, self._tail = rest.split("</reservationSet>")
        self._reservation = self._reservation.replace(_TAGS, "{tags}")

    def page(
        self,
        indexes: Iterable[int],
        *,
        tags: Callable[[int], Mapping[str, str]],
        is_stopping: Callable[[int], bool],
        token: str | None = None,
    ) -> bytes:
        """Return the answer that holds some instances.

        Args:
            indexes: Which.
            tags: Says what tags an instance has.
            is_stopping: Says whether an instance was stopped.
            token: What the next page is asked for with. Default: - it is the last page
        """
        reservations = "".join(self._instance(index, tags(index), is_stopping(index)) for index in indexes)
        head = self._head.replace(_NEXT, f"<nextToken>{token}</nextToken>" if token else "")
        return f"{head}<reservationSet>{reservations}</reservationSet>{self._tail}".encode()

    def _instance(self, index: int, tags: Mapping[str, str], is_stopping: bool) -> str:
        address = f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}"
        text = self._reservation.format(
            id=f"{index:015x}",
            ip=address,
            host=address.replace(".", "-"),
            tags="".join(
                f"<item><key>{escape(key)}</key><value>{escape(value)}</value></item>" for key, value in tags.items()
            ),
        )
        return text.replace(_RUNNING, _STOPPING) if is_stopping else text


def _rendered(fleet: Fleet) -> str:
    """Return the answer with one instance, in which what differs between instances stands in braces."""
    operation = get_service_model("ec2").operation_model("DescribeInstances")
    reservation = {
        "ReservationId": "r-0b{id}",
        "OwnerId": _ACCOUNT,
        "Groups": [],
        "Instances": [_instance(fleet)],
    }
    return str(EC2Serializer(operation).serialize({"Reservations": [reservation], "NextToken": "{token}"})["body"])


def _instance(fleet: Fleet) -> dict[str, Any]:
    """Return an instance as DescribeInstances tells it of a running p5.48xlarge."""
    return {
        "AmiLaunchIndex": 0,
        "ImageId": "ami-0a1b2c3d4e5f60718",
        "InstanceId": "i-0b{id}",
        "InstanceType": INSTANCE_TYPE,
        "LaunchTime": fleet.launched,
        "Monitoring": {"State": "disabled"},
        "Placement": {"AvailabilityZone": "us-east-1b", "GroupName": "base-pod", "Tenancy": "default"},
        "PrivateDnsName": "ip-{host}.ec2.internal",
        "PrivateIpAddress": "{ip}",
        "ProductCodes": [],
        "PublicDnsName": "",
        "State": {"Code": 16, "Name": "running"},
        "StateTransitionReason": "",
        "SubnetId": _SUBNET,
        "VpcId": _VPC,
        "Architecture": "x86_64",
        "BlockDeviceMappings": [
            {
                "DeviceName": "/dev/xvda",
                "Ebs": {
                    "AttachTime": fleet.launched,
                    "DeleteOnTermination": True,
                    "Status": "attached",
                    "VolumeId": "vol-0b{id}",
                },
            }
        ],
        "ClientToken": "b{id}",
        "EbsOptimized": True,
        "EnaSupport": True,
        "Hypervisor": "xen",
        "IamInstanceProfile": {"Arn": f"arn:aws:iam::{_ACCOUNT}:instance-profile/base-pod", "Id": "AIPAEXAMPLE"},
        "NetworkInterfaces": [
            _interface(fleet, 0, 0),
            _interface(fleet, 0, 1),
            *(_interface(fleet, card, 0) for card in range(1, _CARDS)),
        ],
        "RootDeviceName": "/dev/xvda",
        "RootDeviceType": "ebs",
        "SecurityGroups": [_GROUP],
        "SourceDestCheck": True,
        "Tags": [{"Key": "tags", "Value": "{tags}"}],
        "VirtualizationType": "hvm",
        "CpuOptions": {"CoreCount": 96, "ThreadsPerCore": 2},
        "CapacityReservationSpecification": {"CapacityReservationPreference": "open"},
        "HibernationOptions": {"Configured": False},
        "MetadataOptions": {
            "State": "applied",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": 2,
            "HttpEndpoint": "enabled",
            "HttpProtocolIpv6": "disabled",
            "InstanceMetadataTags": "disabled",
        },
        "EnclaveOptions": {"Enabled": False},
        "BootMode": "uefi-preferred",
        "PlatformDetails": "Linux/UNIX",
        "UsageOperation": "RunInstances",
        "UsageOperationUpdateTime": fleet.launched,
        "PrivateDnsNameOptions": {
            "HostnameType": "ip-name",
            "EnableResourceNameDnsARecord": False,
            "EnableResourceNameDnsAAAARecord": False,
        },
        "MaintenanceOptions": {"AutoRecovery": "default"},
        "CurrentInstanceBootMode": "uefi",
        "NetworkPerformanceOptions": {"BandwidthWeighting": "default"},
        "Operator": {"Managed": False},
    }


def _interface(fleet: Fleet, card: int, device: int) -> dict[str, Any]:
    """Return an interface: the one with the address, or one for EFA alone."""
    number = card + 1 if card or device else 0
    is_primary = number == 0
    address = {"Primary": True, "PrivateDnsName": "ip-{host}.ec2.internal", "PrivateIpAddress": "{ip}"}
    return {
        "Attachment": {
            "AttachTime": fleet.launched,
            "AttachmentId": f"eni-attach-{number:02x}{{id}}",
            "DeleteOnTermination": True,
            "DeviceIndex": device,
            "Status": "attached",
            "NetworkCardIndex": card,
        },
        "Description": "",
        "Groups": [_GROUP],
        "Ipv6Addresses": [],
        "MacAddress": f"02:00:00:00:00:{number:02x}",
        "NetworkInterfaceId": f"eni-{number:02x}{{id}}",
        "OwnerId": _ACCOUNT,
        "PrivateIpAddresses": [address] if is_primary else [],
        **({"PrivateDnsName": address["PrivateDnsName"], "PrivateIpAddress": "{ip}"} if is_primary else {}),
        "SourceDestCheck": True,
        "Status": "in-use",
        "SubnetId": _SUBNET,
        "VpcId": _VPC,
        "InterfaceType": "interface" if is_primary else "efa-only",
        "Operator": {"Managed": False},
    }
