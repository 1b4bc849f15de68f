"""The tags by which operators and Lambda functions find what a cluster is made of.

They are never put on placement groups: `Tags` of `AWS::EC2::PlacementGroup` is create-only, so a tag that
changes would replace the group under its running instances.
"""

CLUSTER_TAG = "cdk-training-cluster:cluster"
"""On everything an operator or a function must find; the value is the cluster's name."""

NODE_GROUP_TAG = "cdk-training-cluster:node-group"
"""On what belongs to one node group; the value is the group's name."""
