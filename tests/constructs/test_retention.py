"""What stays when a stack goes, and what goes when a successor takes its place."""

from aws_cdk import App, CfnResource

from cdk_training_cluster import NodeGroup, TrainingCluster
from cdk_training_cluster.core.retention import keep, keep_unless_replaced
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.foundation import FoundationStack
from examples import PROJECT
from synthesis import ZONE, new_stack, only


def test_what_holds_data_outlives_its_stack_and_its_successor() -> None:
    stack = new_stack()
    keep(CfnResource(stack, "Kept", type="AWS::S3::Bucket"))

    found = only(stack, "AWS::S3::Bucket")

    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Retain")


def test_the_state_table_goes_with_a_cluster_that_made_it_and_outlives_one_in_a_foundation() -> None:
    stack = new_stack()
    group = NodeGroup("workers", instance_types=["g6.48xlarge"], count=2)
    TrainingCluster(stack, "Pod", availability_zone=ZONE, node_groups=[group])
    file = read_cluster_file(PROJECT / "clusters/dev-box.yaml")
    foundation = FoundationStack(App(), file.foundation_stack_name, cluster=file)

    keys = {
        "KeySchema": [{"AttributeName": "part", "KeyType": "HASH"}, {"AttributeName": "name", "KeyType": "RANGE"}]
    }
    policies = {each: only(each, "AWS::DynamoDB::Table", keys)["DeletionPolicy"] for each in (stack, foundation)}

    assert policies == {stack: "Delete", foundation: "RetainExceptOnCreate"}


def test_a_rule_outlives_its_stack_and_not_its_successor_which_ec2_would_refuse_as_a_duplicate() -> None:
    """Https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html: InvalidPermission.Duplicate."""
    stack = new_stack()
    keep_unless_replaced(CfnResource(stack, "Rule", type="AWS::EC2::SecurityGroupIngress"))

    found = only(stack, "AWS::EC2::SecurityGroupIngress")

    assert (found["DeletionPolicy"], found["UpdateReplacePolicy"]) == ("RetainExceptOnCreate", "Delete")
