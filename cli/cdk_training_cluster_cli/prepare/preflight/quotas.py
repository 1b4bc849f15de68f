"""Quotas that a deployment or a start would exceed: vCPUs by family and market, addresses, networks, FSx, Lambda."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from cdk_training_cluster import InstanceTypeInfo, instance_type_info
from cdk_training_cluster_cli.prepare.preflight.checks import (
    Aws,
    Check,
    Verdict,
    failed,
    found,
    passed,
    tags_of,
    unknown,
)
from cdk_training_cluster_cli.prepare.preflight.needs import GroupNeed, Needs
from cdk_training_cluster_cli.prepare.preflight.stacks import described_stack
from cluster_contract.tags import CLUSTER_TAG


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A quota of an account in a region.

    Attributes:
        service: The service's code in Service Quotas.
        code: The quota's code.
        name: The quota's name.
        unit: What is counted.
    """

    service: str
    code: str
    name: str
    unit: str

    def increase(self, region: str, value: float) -> str:
        """Return the command that asks AWS for more.

        Args:
            region: The region.
            value: How much is needed.
        """
        return (
            f"aws service-quotas request-service-quota-increase --region {region} --service-code {self.service} "
            f"--quota-code {self.code} --desired-value {value:g}"
        )

    def ask(self, aws: Aws) -> float | None:
        """Return its value: the account's own, or AWS's default where the account has none. None: there is no such.

        https://docs.aws.amazon.com/servicequotas/2019-06-24/apireference/API_GetServiceQuota.html

        Args:
            aws: AWS.
        """
        client, which = aws.client("service-quotas"), {"ServiceCode": self.service, "QuotaCode": self.code}
        said = found(partial(client.get_service_quota, **which), "NoSuchResourceException")
        said = said or found(partial(client.get_aws_default_service_quota, **which), "NoSuchResourceException")
        return None if said is None else float(said["Quota"]["Value"])


def _vcpus(code: str, name: str) -> Quota:
    return Quota(service="ec2", code=code, name=name, unit="vCPUs")


# By the letters that a type's family begins with. Codes and names:
# https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
_STANDARD = "Standard (A, C, D, H, I, M, R, T, Z)"
_G, _HIGH_MEMORY = "G and VT", "High Memory"
_FAMILIES: tuple[tuple[str, str], ...] = (
    (r"hpc", "HPC"),
    (r"inf", "Inf"),
    (r"trn", "Trn"),
    (r"dl", "DL"),
    (r"vt|g", _G),
    (r"p", "P"),
    (r"f", "F"),
    (r"x", "X"),
    (r"u", _HIGH_MEMORY),
    (r"[acdhimrtz]", _STANDARD),
)
_ON_DEMAND = {
    "DL": "L-6E869C2A",
    "F": "L-74FC7D96",
    _G: "L-DB2E81BA",
    _HIGH_MEMORY: "L-43DA4232",
    "HPC": "L-F7808C92",
    "Inf": "L-1945791B",
    "P": "L-417A185B",
    _STANDARD: "L-1216C47A",
    "Trn": "L-2C3B7624",
    "X": "L-7295265B",
}
# Spot has two quotas for P, and none is documented for generations after P5, for High Memory and HPC.
_SPOT = {
    "DL": "L-85EED4F7",
    "F": "L-88CF9481",
    _G: "L-3819A6DF",
    "Inf": "L-B5D1601B",
    "P4, P3 and P2": "L-7212CCBC",
    "P5": "L-C4BD4855",
    _STANDARD: "L-34B43A08",
    "Trn": "L-6B0D517C",
    "X": "L-E3A00192",
}


def vcpu_quota(instance_type: str, *, spot: bool) -> Quota | None:
    """Return the quota that an instance type's vCPUs count against. None: AWS documents none.

    Args:
        instance_type: The type.
        spot: Whether it is bought as a Spot Instance.
    """
    family = next((name for letters, name in _FAMILIES if re.match(letters, instance_type)), "")
    if not spot:
        code = _ON_DEMAND.get(family)
        return None if code is None else _vcpus(code, f"Running On-Demand {family} instances")
    if family == "P":
        family = "P4, P3 and P2" if re.match(r"p[234]", instance_type) else instance_type[:2].upper()
    code = _SPOT.get(family)
    return None if code is None else _vcpus(code, f"All {family} Spot Instance Requests")


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What a cluster takes of a quota.

    Attributes:
        least: What it takes at least.
        most: What it may take.
    """

    least: float
    most: float

    def __add__(self, other: "Demand") -> "Demand":
        return Demand(least=self.least + other.least, most=self.most + other.most)


def vcpu_demands(groups: Sequence[GroupNeed]) -> tuple[Mapping[Quota, Demand], tuple[str, ...]]:
    """Return what node groups take of each vCPU quota, and the Spot types for which AWS documents none.

    A reservation that a group makes counts as its nodes do, one that exists counts already:
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html#capacity-reservations-limits
    Capacity Blocks have quotas of their own, for buying one:
    https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html#capacity-blocks-quotas

    Args:
        groups: The node groups.
    """
    demands: dict[Quota, Demand] = {}
    without: dict[str, None] = {}
    for group in groups:
        bought = group.capacity
        spot = bought.uses_spot
        if bought.capacity_reservation_id is not None or (bought.is_prioritized and not bought.falls_back):
            continue
        by_quota: dict[Quota, list[InstanceTypeInfo]] = {}
        for info in group.infos:
            quota = vcpu_quota(info.name, spot=spot)
            if quota is None:
                without[info.name] = None
            else:
                by_quota.setdefault(quota, []).append(info)
        # With several quotas EC2 chooses; with reservations the On-Demand Instances are what these do not give.
        certain = len(by_quota) == 1 and not without and not bought.is_prioritized
        for quota, infos in by_quota.items():
            least = group.count * min(info.vcpus for info in infos) if certain else 0
            demand = Demand(least=least, most=group.count * max(info.vcpus for info in infos))
            demands[quota] = demands.get(quota, Demand(least=0, most=0)) + demand
    return demands, tuple(without)


def judge_quota(quota: Quota, demand: Demand, region: str, answer: tuple[float | None, float]) -> Verdict:
    """Say whether a quota is enough.

    Args:
        quota: The quota.
        demand: What the cluster takes of it.
        region: The region.
        answer: The quota's value, or None, and what is in use of it without the cluster's own.
    """
    value, used = answer
    if value is None:
        return unknown(f"Service Quotas knows no quota {quota.code} ({quota.name}) in {region}")
    free = value - used
    wants = f"{demand.most:,g}" if demand.least == demand.most else f"{demand.least:,g} to {demand.most:,g}"
    said = f"the cluster takes {wants} {quota.unit}, and {free:,g} of {value:,g} are free"
    if free >= demand.most:
        return passed(said)
    mend = quota.increase(region, used + demand.most)
    return failed(said, mend) if free < demand.least else unknown(f"{said}: enough for some of it", mend)


def vcpus_in_use(aws: Aws, quota: Quota, cluster: str) -> float:
    """Return the vCPUs that count against a quota now, without those of the cluster.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html

    Args:
        aws: AWS.
        quota: The quota.
        cluster: The cluster's name.
    """
    ec2 = aws.client("ec2")
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=states)
    used = 0.0
    for instance in pages.search("Reservations[].Instances[]"):
        lifecycle = instance.get("InstanceLifecycle")
        if lifecycle in (None, "spot") and tags_of(instance).get(CLUSTER_TAG) != cluster:
            used += _counted(quota, instance["InstanceType"], instance.get("CpuOptions"), spot=lifecycle == "spot")
    if quota.code in _SPOT.values():
        return used
    counting = ["assessing", "scheduled", "pending", "active", "delayed"]
    reservations = ec2.get_paginator("describe_capacity_reservations").paginate(
        Filters=[{"Name": "state", "Values": counting}]
    )
    for each in reservations.search("CapacityReservations[]"):
        if each.get("ReservationType", "default") == "default" and tags_of(each).get(CLUSTER_TAG) != cluster:
            # What runs in an active one is counted above.
            unused = each["AvailableInstanceCount" if each["State"] == "active" else "TotalInstanceCount"]
            used += unused * _counted(quota, each["InstanceType"], None, spot=False)
    return used


def _counted(quota: Quota, name: str, options: Mapping[str, int] | None, *, spot: bool) -> float:
    """Return the vCPUs of an instance that count against a quota."""
    if vcpu_quota(name, spot=spot) != quota:
        return 0
    try:
        return instance_type_info(name).vcpus
    except ValueError:
        return options["CoreCount"] * options["ThreadsPerCore"] if options else 0


def _count(operation: str, answer: str, **parameters: Any) -> Callable[[Aws], float]:  # noqa: ANN401 - of any call
    def ask(aws: Aws) -> float:
        client = aws.client("ec2")
        if not client.can_paginate(operation):
            return len(getattr(client, operation)(**parameters)[answer])
        return sum(1 for _ in client.get_paginator(operation).paginate(**parameters).search(f"{answer}[]"))

    return ask


def _nat_gateways(zone: str) -> Callable[[Aws], float]:
    def ask(aws: Aws) -> float:
        in_zone = [{"Name": "availability-zone", "Values": [zone]}]
        pages = aws.client("ec2").get_paginator("describe_subnets").paginate(Filters=in_zone)
        subnets = {each["SubnetId"] for each in pages.search("Subnets[]")}
        # Gateways in these states count: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
        states = [{"Name": "state", "Values": ["pending", "available", "deleting"]}]
        gateways = aws.client("ec2").get_paginator("describe_nat_gateways").paginate(Filters=states)
        return sum(each["SubnetId"] in subnets for each in gateways.search("NatGateways[]"))

    return ask


def network_quotas(zone: str) -> Sequence[tuple[str, Quota, Callable[[Aws], float]]]:
    """Return, by the CloudFormation types that count, the quotas of networks and how what is in use is asked.

    https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html

    Args:
        zone: The zone.
    """
    return (
        (
            "AWS::EC2::VPC",
            Quota(service="vpc", code="L-F678F1CE", name="VPCs per Region", unit="of them"),
            _count("describe_vpcs", "Vpcs"),
        ),
        (
            "AWS::EC2::InternetGateway",
            Quota(service="vpc", code="L-A4707A72", name="Internet gateways per Region", unit="of them"),
            _count("describe_internet_gateways", "InternetGateways"),
        ),
        (
            "AWS::EC2::NatGateway",
            Quota(service="vpc", code="L-FE5A380F", name="NAT gateways per Availability Zone", unit="of them"),
            _nat_gateways(zone),
        ),
        (
            "AWS::EC2::EIP",
            Quota(service="ec2", code="L-0263D0A3", name="EC2-VPC Elastic IPs", unit="of them"),
            _count("describe_addresses", "Addresses", Filters=[{"Name": "domain", "Values": ["vpc"]}]),
        ),
    )


def quota_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of EC2's and the network's quotas.

    Args:
        needs: What the cluster needs.
    """
    yield from _orchestrator_checks(needs)
    # SageMaker's instances count against quotas of its own.
    demands, without = vcpu_demands(() if needs.orchestrator.traits.is_hyperpod else needs.groups)
    name = needs.cluster.name
    for quota, demand in demands.items():
        yield _check(quota, demand, needs.region, partial(_used_of, quota, name))
    for each in without:
        yield Check(
            name=f"vCPU quota of {each}",
            ask=lambda _: None,
            judge=partial(_no_quota, each),
        )
    for kind, quota, used in network_quotas(needs.zone):
        count = needs.foundation.get(kind, 0)
        if count:
            ask = partial(_unless_made, needs.cluster.foundation_stack_name, used, count)
            yield _check(quota, Demand(least=count, most=count), needs.region, ask)


# https://docs.aws.amazon.com/general/latest/gr/eks.html
_EKS_CLUSTERS = Quota(service="eks", code="L-1194D53C", name="Clusters", unit="of them")


def _orchestrator_checks(needs: Needs) -> Iterator[Check]:
    """Yield the checks of what the orchestrator that runs jobs needs; AWS documents not every quota's code."""
    count = needs.nodes.get("AWS::EKS::Cluster", 0)
    if count:
        used = partial(_unless_made, needs.cluster.cluster_stack_name, _eks_clusters, count)
        yield _check(_EKS_CLUSTERS, Demand(least=count, most=count), needs.region, used)
    if needs.orchestrator.traits.is_hyperpod:
        for group in needs.groups:
            for name in group.instance_types:
                yield Check(
                    name=f"quota of ml.{name} for cluster usage",
                    ask=lambda _: None,
                    judge=partial(_hyperpod_quota, name, group.count),
                )


def _hyperpod_quota(instance_type: str, count: int, _: object) -> Verdict:
    return unknown(
        f"the cluster takes {count} x ml.{instance_type}, and no document of AWS names the quota's code",
        f"look for ml.{instance_type} for cluster usage in the Service Quotas console under Amazon SageMaker",
    )


def _eks_clusters(aws: Aws) -> float:
    # https://docs.aws.amazon.com/eks/latest/APIReference/API_ListClusters.html
    return sum(1 for _ in aws.client("eks").get_paginator("list_clusters").paginate().search("clusters[]"))


def _check(quota: Quota, demand: Demand, region: str, used: Callable[[Aws], float]) -> Check:
    return Check(
        name=f"quota {quota.code}, {quota.name}",
        ask=lambda aws: (quota.ask(aws), used(aws)),
        judge=partial(judge_quota, quota, demand, region),
    )


def _used_of(quota: Quota, cluster: str, aws: Aws) -> float:
    return vcpus_in_use(aws, quota, cluster)


def _unless_made(stack: str, used: Callable[[Aws], float], count: int, aws: Aws) -> float:
    """Return what is in use without what a stack has made of it already."""
    return used(aws) - (count if described_stack(stack, aws) is not None else 0)


def _no_quota(instance_type: str, _: object) -> Verdict:
    return unknown(
        f"AWS documents no vCPU quota by name for Spot Instances of {instance_type}",
        "look for it in the Service Quotas console under Amazon EC2",
    )
