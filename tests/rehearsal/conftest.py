"""The local AWS that the tests here share."""

from local_aws_scene import aws, nodes, stacks

__all__ = ["aws", "nodes", "stacks"]
