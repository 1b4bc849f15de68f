"""The EFA security group: what it lets in and out, in the template itself."""

from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import EfaSecurityGroup
from synthesis import new_stack, only, resources


def _group(stack: Stack) -> tuple[EfaSecurityGroup, ec2.IVpc]:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0a1b2c3d4e5f67890", availability_zones=["us-east-1b"])
    return EfaSecurityGroup(stack, "Efa", vpc=vpc), vpc


def test_efa_traffic_may_leave_to_the_group_itself_and_come_from_it() -> None:
    stack = new_stack()
    _group(stack)
    ingress = only(stack, "AWS::EC2::SecurityGroupIngress")["Properties"]
    egress = only(stack, "AWS::EC2::SecurityGroupEgress")["Properties"]
    (logical_id,) = resources(stack, "AWS::EC2::SecurityGroup")
    itself = {"Fn::GetAtt": [logical_id, "GroupId"]}
    assert (ingress["IpProtocol"], ingress["GroupId"], ingress["SourceSecurityGroupId"]) == (
        "-1",
        itself,
        itself,
    )
    assert (egress["IpProtocol"], egress["GroupId"], egress["DestinationSecurityGroupId"]) == (
        "-1",
        itself,
        itself,
    )


def test_everything_else_may_leave_by_a_rule_that_is_in_the_template() -> None:
    stack = new_stack()
    _group(stack)
    (egress,) = only(stack, "AWS::EC2::SecurityGroup")["Properties"]["SecurityGroupEgress"]
    assert (egress["CidrIp"], egress["IpProtocol"]) == ("0.0.0.0/0", "-1")


def test_nothing_from_outside_may_come_in() -> None:
    stack = new_stack()
    _group(stack)
    assert "SecurityGroupIngress" not in only(stack, "AWS::EC2::SecurityGroup")["Properties"]
    only(stack, "AWS::EC2::SecurityGroupIngress")


def test_a_peer_can_be_let_in_through_connections() -> None:
    stack = new_stack()
    group, vpc = _group(stack)
    bastion = ec2.SecurityGroup(stack, "Bastion", vpc=vpc)
    group.connections.allow_from(bastion, ec2.Port.tcp(22))
    only(stack, "AWS::EC2::SecurityGroupIngress", {"FromPort": 22, "ToPort": 22, "IpProtocol": "tcp"})


def test_the_description_stays_as_released_since_a_new_one_replaces_the_group() -> None:
    stack = new_stack()
    _group(stack)
    properties = only(stack, "AWS::EC2::SecurityGroup")["Properties"]
    assert properties["GroupDescription"] == "EFA: all traffic between the members, and out"
