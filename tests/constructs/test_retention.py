"""What stays when a stack goes, and what goes when a successor takes its place."""

from aws_cdk import CfnResource

from cdk_training_cluster.retention import keep, keep_unless_replaced
from synthesis import new_stack, only


def test_what_holds_data_outlives_its_stack_and_its_successor() -> None:
    stack = new_stack()
    keep(CfnResource(stack, "Kept", type="AWS::S3::Bucket"))

    found = only(stack, "AWS::S3::Bucket")

    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_a_rule_outlives_its_stack_and_not_its_successor_which_ec2_would_refuse_as_a_duplicate() -> None:
    """Https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html: InvalidPermission.Duplicate."""
    stack = new_stack()
    keep_unless_replaced(CfnResource(stack, "Rule", type="AWS::EC2::SecurityGroupIngress"))

    found = only(stack, "AWS::EC2::SecurityGroupIngress")

    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Delete")
