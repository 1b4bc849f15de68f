"""The EFA security group: what it lets in and out, in the template itself."""

from aws_cdk import aws_ec2 as ec2
from cdk_training_cluster import EfaSecurityGroup
from synthesis import new_stack, only, resources


def _group() -> tuple[EfaSecurityGroup, ec2.IVpc]:
    stack = new_stack()
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-0a1b2c3d4e5f67890", availability_zones=["us-east-1b"]
    )
    return EfaSecurityGroup(stack, "Efa", vpc=vpc), vpc


def test_efa_traffic_may_leave_to_the_group_itself_and_come_from_it() -> None:
    group, _ = _group()
    stack = group.node.scope
    ingress = only(stack, "AWS::EC2::SecurityGroupIngress")["Properties"]
    egress = only(stack, "AWS::EC2::SecurityGroupEgress")["Properties"]
    (logical_id,) = resources(stack, "AWS::EC2::SecurityGroup")
    itself = {"Fn::GetAtt": [logical_id, "GroupId"]}
    assert (ingress["IpProtocol"], ingress["GroupId"], ingress["SourceSecurityGroupId"]) == ("-1", itself, itself)
    assert (egress["IpProtocol"], egress["GroupId"], egress["DestinationSecurityGroupId"]) == ("-1", itself, itself)


def test_everything_else_may_leave_by_a_rule_that_is_in_the_template() -> None:
    group, _ = _group()
    (egress,) = only(group.node.scope, "AWS::EC2::SecurityGroup")["Properties"]["SecurityGroupEgress"]
    assert (egress["CidrIp"], egress["IpProtocol"]) == ("0.0.0.0/0", "-1")


def test_nothing_from_outside_may_come_in() -> None:
    group, _ = _group()
    assert "SecurityGroupIngress" not in only(group.node.scope, "AWS::EC2::SecurityGroup")["Properties"]
    only(group.node.scope, "AWS::EC2::SecurityGroupIngress")


def test_a_peer_can_be_let_in_through_connections() -> None:
    group, vpc = _group()
    stack = group.node.scope
    bastion = ec2.SecurityGroup(stack, "Bastion", vpc=vpc)
    group.connections.allow_from(bastion, ec2.Port.tcp(22))
    only(stack, "AWS::EC2::SecurityGroupIngress", {"FromPort": 22, "ToPort": 22, "IpProtocol": "tcp"})


def test_the_description_stays_as_released_since_a_new_one_replaces_the_group() -> None:
    group, _ = _group()
    properties = only(group.node.scope, "AWS::EC2::SecurityGroup")["Properties"]
    assert properties["GroupDescription"] == "EFA: all traffic between the members, and out"
