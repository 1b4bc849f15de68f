"""The local AWS that the tests here share."""

from local_aws_scene import aws

__all__ = ["aws"]
