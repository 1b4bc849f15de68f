"""A Lambda function made straight through the services' APIs, without a stack."""

import io
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from local_aws import LocalAws

# Long enough for a busy machine; Lambda's default is 3 s.
_TIMEOUT_SECONDS = 600


@contextmanager
def made_function(aws: LocalAws, name: str, handler: str, variables: Mapping[str, str], **more: Any) -> Iterator[str]:
    """Make a function and yield its ARN.

    Args:
        aws: Where.
        name: Its name.
        handler: The text of its one module, with a function `handler`.
        variables: Its environment.
        more: What else CreateFunction takes.
    """
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("pack/handler.py", handler)
    trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role: dict[str, Any] = aws.client("iam").create_role(
        RoleName=name, AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    )
    made = aws.client("lambda").create_function(
        FunctionName=name,
        Role=role["Role"]["Arn"],
        Runtime="python3.13",
        Handler="pack.handler.handler",
        Code={"ZipFile": code.getvalue()},
        Environment={"Variables": dict(variables)},
        **{"Timeout": _TIMEOUT_SECONDS, **more},
    )
    yield str(made["FunctionArn"])
    aws.client("lambda").delete_function(FunctionName=name)
    aws.client("iam").delete_role(RoleName=name)
