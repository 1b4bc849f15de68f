"""Settings that must be there before the first synth starts a Node process, and the local AWS that tests share."""

import os
from functools import cache

import botocore.session
from hypothesis import settings

from local_aws_scene import aws, nodes, stacks

__all__ = ["aws", "nodes", "stacks"]

# The validation costs seconds in every process; the tests of the examples turn it on in processes of their own.
os.environ["CDK_VALIDATION"] = "false"
os.environ["JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION"] = "1"

# Each session of boto3 would read its services' models anew, half a second of a test; no test changes them.
botocore.session.create_loader = cache(botocore.session.create_loader)

# How long an example takes is no property of what is tested. The examples are the same in every run, so that a run
# says whether a change is sound; `pytest --hypothesis-profile=random` looks for new ones.
settings.register_profile("tests", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("random", deadline=None, max_examples=300)
settings.load_profile("tests")
