"""The security group of a file system, and the rules between it and the nodes' group."""

from collections.abc import Iterator
from typing import Any

from aws_cdk import CfnResource
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from cdk_training_cluster.core.retention import keep, keep_unless_replaced
from cdk_training_cluster.network import ClusterNetwork

# Create-only: re-wording the group's description would replace the group and, with it, the file system.
_GROUP_DESCRIPTION = "FSx for Lustre: the file system and its clients"

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html
_LUSTRE_PORTS = ((988, 988), (1018, 1023))

"""The range that holds Lustre's ports, as one port of `ec2.Connections`."""

_IN, _OUT, _SELF = "Lustre from the nodes", "Lustre to the nodes", "Lustre between the servers of the file system"
_BACK = "Lustre from the file system"


def _traffic(*, efa: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what rules let pass, with the end of their ids.

    EFA takes all traffic between two security groups; neither ports nor address ranges count.
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/limit-access-security-groups.html#efa-security-groups
    """
    if efa:
        yield "Efa", {"ip_protocol": "-1"}
        return
    for first, last in _LUSTRE_PORTS:
        yield str(first), {"ip_protocol": "tcp", "from_port": first, "to_port": last}


def ports() -> ec2.Port:
    """Return the ports of Lustre, as one range."""
    return ec2.Port.tcp_range(_LUSTRE_PORTS[0][0], _LUSTRE_PORTS[-1][1])


def make_group(scope: Construct, network: ClusterNetwork, *, efa: bool) -> ec2.CfnSecurityGroup:
    """Make the file system's own group; rules may be added to it later, but it is never swapped for another.

    Args:
        scope: The file system.
        network: Where it lives.
        efa: Whether it has EFA.
    """
    nodes = network.security_group.security_group_id
    ingress, egress = ec2.CfnSecurityGroup.IngressProperty, ec2.CfnSecurityGroup.EgressProperty
    group = ec2.CfnSecurityGroup(
        scope,
        "SecurityGroup",
        group_description=_GROUP_DESCRIPTION,
        vpc_id=network.vpc.vpc_id,
        security_group_ingress=[
            ingress(**traffic, source_security_group_id=nodes, description=_IN) for _, traffic in _traffic(efa=efa)
        ],
        security_group_egress=[
            egress(**traffic, destination_security_group_id=nodes, description=_OUT)
            for _, traffic in _traffic(efa=efa)
        ],
    )
    keep(group)
    return group


def make_rules(scope: Construct, network: ClusterNetwork, own: str, *, efa: bool) -> list[CfnResource]:
    """Make the rules that name the file system's group itself, or stand in the nodes' group.

    Args:
        scope: The file system.
        network: Where it lives.
        own: The id of the file system's group.
        efa: Whether it has EFA.
    """
    nodes = network.security_group.security_group_id
    ingress, egress = ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress
    rules: list[CfnResource] = []
    for end, traffic in _traffic(efa=efa):
        own_in: dict[str, Any] = {"source_security_group_id": own, **traffic}
        own_out: dict[str, Any] = {"destination_security_group_id": own, **traffic}
        rules += [
            ingress(scope, f"SelfIngress{end}", group_id=own, description=_SELF, **own_in),
            egress(scope, f"SelfEgress{end}", group_id=own, description=_SELF, **own_out),
            ingress(scope, f"NodeIngress{end}", group_id=nodes, description=_BACK, **own_in),
        ]
        if efa:  # over TCP the nodes' rule to everywhere is enough
            rules.append(egress(scope, f"NodeEgress{end}", group_id=nodes, description=_IN, **own_out))
    for rule in rules:
        keep_unless_replaced(rule)
    return rules


def let_nodes_in(scope: Construct, network: ClusterNetwork, own: str, *, efa: bool) -> Iterator[CfnResource]:
    """Let nodes and an existing file system reach each other, and yield the rules.

    Args:
        scope: The file system.
        network: Where it lives.
        own: The id of the file system's group, which has rules for its servers already.
        efa: Whether it has EFA.
    """
    nodes = network.security_group.security_group_id
    ingress, egress = ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress
    for end, traffic in _traffic(efa=efa):
        yield ingress(
            scope, f"Ingress{end}", group_id=own, source_security_group_id=nodes, description=_IN, **traffic
        )
        yield egress(
            scope, f"Egress{end}", group_id=own, destination_security_group_id=nodes, description=_OUT, **traffic
        )
        yield ingress(
            scope, f"NodeIngress{end}", group_id=nodes, source_security_group_id=own, description=_BACK, **traffic
        )
        if efa:
            yield egress(
                scope,
                f"NodeEgress{end}",
                group_id=nodes,
                destination_security_group_id=own,
                description=_IN,
                **traffic,
            )
