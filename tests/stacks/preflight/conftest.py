"""A local AWS of their own: it is a bare account at first."""

from local_aws_scene import aws

__all__ = ["aws"]
