"""The security group that lets Elastic Fabric Adapters talk to each other."""

import jsii
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.templates.checks import check_templates

# The description is create-only: re-wording it would replace the group and, with it, everything that names the
# group for good, such as a file system.
_DESCRIPTION = "EFA: all traffic between the members, and out"

# Hosts with EFA "must be part of a security group that allows all inbound and outbound traffic to and from the
# security group itself"; a rule for 0.0.0.0/0 does not count.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security
_ALL_PROTOCOLS = "-1"


@jsii.implements(ec2.IConnectable)
class EfaSecurityGroup(Construct):
    """Make the security group of EFA nodes: all protocols in from and out to itself, and out to everywhere.

    EFA traffic is allowed only by rules that name the group itself; the rule to everywhere is what the nodes need
    for SSM, S3, ECR and package mirrors. Both are in the template, whatever CDK's defaults are.

    Resources: `AWS::EC2::SecurityGroup`, one `AWS::EC2::SecurityGroupIngress`, one `AWS::EC2::SecurityGroupEgress`.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa-start.html#efa-start-security
    """

    @checked
    def __init__(self, scope: Construct, id: str, *, vpc: ec2.IVpc) -> None:
        """Make the group.

        Args:
            scope: The parent construct.
            id: The construct's id.
            vpc: The VPC that holds the nodes; EFA traffic does not leave it.
        """
        super().__init__(scope, id)
        group = ec2.CfnSecurityGroup(
            self,
            "Resource",
            group_description=_DESCRIPTION,
            vpc_id=vpc.vpc_id,
            security_group_egress=[
                ec2.CfnSecurityGroup.EgressProperty(
                    ip_protocol=_ALL_PROTOCOLS, cidr_ip="0.0.0.0/0", description="SSM, S3, ECR and packages"
                )
            ],
        )
        self.security_group_id: str = group.attr_group_id
        ingress = ec2.CfnSecurityGroupIngress(
            self,
            "SelfIngress",
            group_id=self.security_group_id,
            source_security_group_id=self.security_group_id,
            ip_protocol=_ALL_PROTOCOLS,
            description="EFA: all traffic from the members",
        )
        egress = ec2.CfnSecurityGroupEgress(
            self,
            "SelfEgress",
            group_id=self.security_group_id,
            destination_security_group_id=self.security_group_id,
            ip_protocol=_ALL_PROTOCOLS,
            description="EFA: all traffic to the members",
        )
        self.resources: tuple[ec2.CfnSecurityGroup, ec2.CfnSecurityGroupIngress, ec2.CfnSecurityGroupEgress] = (
            group,
            ingress,
            egress,
        )
        self.security_group: ec2.ISecurityGroup = ec2.SecurityGroup.from_security_group_id(
            self, "Group", self.security_group_id, allow_all_outbound=True
        )
        self._connections = ec2.Connections(security_groups=[self.security_group])
        check_templates(self)

    @property
    def connections(self) -> ec2.Connections:
        """What the members let in and out; rules added here are added to the group."""
        return self._connections
