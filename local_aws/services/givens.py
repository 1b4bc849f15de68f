"""What is in an account and region before anything is deployed: things with ids that the caller chooses.

AWS's APIs choose ids themselves, so these are control requests of a rehearsal's, and none of AWS's.
"""

from collections.abc import Mapping
from typing import Any

from moto.ec2.models import ec2_backends
from moto.ec2.models.amis import Ami
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend, Zone
from moto.ec2.models.instance_types import INSTANCE_TYPES
from moto.ec2.models.subnets import Subnet
from moto.ec2.models.vpcs import VPC
from moto.eks.models import eks_backends
from moto.utilities.utils import get_partition

from local_aws.services.eks_kept import EksCluster
from local_aws.services.eks_rules import check_cluster

_VPC_RANGE, _SUBNET_RANGE = "10.0.0.0/16", "10.0.128.0/17"


def add_zone(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add a zone to a region, unless it is there."""
    region, name = str(request["region"]), str(request["availability_zone"])
    zones = RegionsAndZonesBackend.zones.setdefault(region, [])
    added = all(zone.name != name for zone in zones)
    if added:
        # What is between the region and the letter is a Local Zone's place.
        local = len(name) > len(region) + 1
        zones.append(
            Zone(
                name=name,
                region_name=region,
                zone_id=f"{name}z{len(zones) + 1}",
                zone_type="local-zone" if local else "availability-zone",
            )
        )
    return {"added": added}


def add_instance_type(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a type known, unless it is: EC2's own facts stay as they are."""
    name = str(request["InstanceType"])
    added = name not in INSTANCE_TYPES
    if added:
        INSTANCE_TYPES[name] = dict(request)
    return {"added": added}


def add_image(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make an image."""
    ec2 = _ec2(request)
    image_id = str(request["image_id"])
    if image_id in ec2.amis:
        raise ValueError(f"there is an image {image_id} already")
    ec2.amis[image_id] = image = Ami(
        ec2,
        image_id,
        name=image_id,
        owner_id=ec2.account_id,
        virtualization_type="hvm",
        architecture=str(request["architecture"]),
        hypervisor="xen",
        root_device_type=str(request.get("root_device_type") or "ebs"),
        root_device_name=str(request["root_device_name"]),
        region_name=ec2.region_name,
    )
    image.platform_details = str(request.get("platform") or "Linux/UNIX")
    image.ebs_snapshot.encrypted = bool(request.get("encrypted"))
    return {"added": True}


def add_network(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a VPC with what EC2 gives every VPC, and one subnet in it."""
    ec2 = _ec2(request)
    vpc_id, subnet_id, name = str(request["vpc_id"]), str(request["subnet_id"]), str(request["availability_zone"])
    zone = ec2.get_zone_by_name(name)
    if zone is None:
        raise ValueError(f"there is no zone {name} in {ec2.region_name}")
    if vpc_id in ec2.vpcs:
        raise ValueError(f"there is a VPC {vpc_id} already")
    ec2.vpcs[vpc_id] = VPC(ec2, vpc_id, _VPC_RANGE, is_default=False)
    ec2.create_route_table(vpc_id, main=True)
    ec2.create_network_acl(vpc_id, default=True)
    ec2.create_security_group("default", "default VPC security group", vpc_id=vpc_id, is_default=True)
    ec2.subnets[name][subnet_id] = Subnet(
        ec2,
        subnet_id,
        vpc_id,
        _SUBNET_RANGE,
        None,
        zone,
        default_for_az=False,
        map_public_ip_on_launch=False,
    )
    ec2.associate_default_network_acl_with_subnet(subnet_id, vpc_id)
    return {"added": True}


def add_eks_cluster(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make an EKS cluster, with a cluster security group of the caller's id."""
    ec2, name = _ec2(request), str(request["name"])
    account, region = str(request["account"]), str(request["region"])
    clusters = vars(eks_backends[account][region]).setdefault("kept_clusters", {})
    if name in clusters:
        raise ValueError(f"there is an EKS cluster {name} already")
    network = {"subnetIds": list(request["subnet_ids"])}
    check_cluster({"name": name, "version": request["version"], "resourcesVpcConfig": network}, ec2)
    vpc_id = ec2.get_subnet(network["subnetIds"][0]).vpc_id
    group = ec2.create_security_group(f"eks-cluster-sg-{name}", "EKS created security group", vpc_id=vpc_id)
    del ec2.groups[vpc_id][group.id]
    group.id = group.group_id = str(request["security_group_id"])
    ec2.groups[vpc_id][group.id] = group
    ec2.authorize_security_group_ingress(group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}])
    clusters[name] = EksCluster(
        described={
            "name": name,
            "arn": f"arn:{get_partition(region)}:eks:{region}:{account}:cluster/{name}",
            "version": request["version"],
            "status": request["status"],
            "accessConfig": {"authenticationMode": request["authentication_mode"]},
            "resourcesVpcConfig": {**network, "vpcId": vpc_id, "clusterSecurityGroupId": group.id},
        },
        addons={
            each: {"addonName": each, "clusterName": name, "addonVersion": "v1.0.0-eksbuild.1", "status": "ACTIVE"}
            for each in request["add_ons"]
        },
    )
    return {"added": True}


def _ec2(request: Mapping[str, Any]) -> Any:
    return ec2_backends[str(request["account"])][str(request["region"])]
