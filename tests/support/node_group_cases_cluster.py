"""Cases of the rules about node groups together, by the rule's id."""

from collections.abc import Mapping, Sequence

from cdk_training_cluster import Capacity, IdlePolicy, InterfaceLayout, Placement
from node_group_cases import OWN_IMAGE, RESERVED, ClusterCase, held_in, together, unknown_number

_RADEON = {"instance_types": ["g4ad.xlarge"], "machine_image": OWN_IMAGE, "placement": Placement.NONE}
_UNMEASURED = (
    "node group 'a': the accelerators of g4ad.xlarge report no utilization: idle nodes are neither reported nor "
    "stopped; confirm with idle_policy=IdlePolicy.off(); utilization_command names a command that measures it"
)


def _different(setting: str, given: str) -> str:
    return (
        f"{setting} of {RESERVED} must be the same in each node group that uses it, got {given}: a reservation has "
        "one; correct the others"
    )


def _no_address(names: str) -> Mapping[str, str]:
    return {
        "publicSubnet": f"nodes of {names} have several network interfaces and a public subnet: EC2 gives them no "
        "public address there, so that without VPC endpoints they reach neither S3 nor Systems Manager and cannot be "
        "set up; give ClusterNetwork.from_subnet() a subnet behind a NAT gateway, such as one of vpc.private_subnets"
    }


CLUSTER_CASES: Mapping[str, Sequence[ClusterCase]] = {
    "sharedFacts": (
        together(
            _different("instance_count", "8 for 'a' and 16 for 'b'"),
            groups=[
                {"capacity": held_in(instance_count=8), "count": 1},
                {"capacity": held_in(instance_count=16), "count": 1},
            ],
        ),
        together(
            _different("instance_platform", "Linux/UNIX for 'a' and SUSE Linux for 'b'"),
            groups=[
                {"capacity": held_in(instance_platform="Linux/UNIX"), "count": 1},
                {"capacity": held_in(instance_platform="SUSE Linux"), "count": 1, "machine_image": OWN_IMAGE},
            ],
        ),
        together(
            groups=[
                {"capacity": held_in(instance_count=8), "count": 1},
                {"capacity": held_in(instance_count=None), "count": 1},
            ]
        ),
    ),
    "addresses": (
        together(
            "the network interfaces of all nodes need 124 IP addresses, and the nodes' subnet 10.0.0.128/25 has 123: "
            "lower count, or give the network a larger cidr",
            groups=[{"count": 100}, {"count": 24}],
            node_range="10.0.0.128/25",
        ),
        together(groups=[{"count": 100}, {"count": 23}], node_range="10.0.0.128/25"),
        together(groups=[{"count": 100}, {"count": 24}]),
        together(groups=[{"count": unknown_number()}, {"count": 124}], node_range="10.0.0.128/25"),
        together(
            "the network interfaces of all nodes need 128 IP addresses, and the nodes' subnet 10.0.0.128/25 has 123: "
            "lower count, or give the network a larger cidr",
            groups=[{"count": 16, "interface_layout": InterfaceLayout.BANDWIDTH_OPTIMISED}],
            node_range="10.0.0.128/25",
        ),
    ),
    "nameOnce": (
        together(
            "node_groups must have different names, got 'x' 2 times: rename all but one",
            groups=[{"name": "x"}, {}, {"name": "x"}],
        ),
        together(groups=[{"name": "x"}, {"name": "X"}]),
    ),
    "idleUnmeasured": (
        together(groups=[_RADEON, {}], warnings={"idleUnmeasured": _UNMEASURED}),
        together(groups=[{**_RADEON, "idle_policy": IdlePolicy.off()}]),
        together(groups=[_RADEON], policy=IdlePolicy.off()),
        together(groups=[{"instance_types": ["hpc7a.96xlarge"], "machine_image": OWN_IMAGE}]),
    ),
    "publicSubnet": (
        together(groups=[{}], public_subnet=True, warnings=_no_address("'a'")),
        # One card, but two interfaces.
        together(
            groups=[{"instance_types": ["g5.48xlarge"]}, {"instance_types": ["g5.xlarge"]}, {}],
            public_subnet=True,
            warnings=_no_address("'a' and 'c'"),
        ),
        # One type of several is enough.
        together(
            groups=[{"instance_types": ["g6.xlarge", "g6e.48xlarge"], "capacity": Capacity.spot()}],
            public_subnet=True,
            warnings=_no_address("'a'"),
        ),
        together(groups=[{"instance_types": ["g5.xlarge"]}], public_subnet=True),
        together(groups=[{"instance_types": ["g5.48xlarge"], "efa": False, "count": 1}], public_subnet=True),
        together(groups=[{}]),
    ),
}
