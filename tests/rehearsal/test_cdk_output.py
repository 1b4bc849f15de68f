"""Why the CDK CLI failed, in one line: from outputs as it gives them."""

import os
from pathlib import Path

import pytest

from max_seconds import MAX_SECONDS
from rehearsal.cdk_cli import CdkCli, CdkFailedError
from rehearsal.cdk_output import reason

_DEPLOYMENT = """\
pod-cluster: creating stack...
pod-cluster |   4 | 9:20:33 AM | CREATE_IN_PROGRESS      | AWS::SNS::Topic                    | Alerts (Alerts8D3D) 
pod-cluster |   5 | 9:20:33 AM | ROLLBACK_IN_PROGRESS    | AWS::CloudFormation::Stack         | pod-cluster The following resource(s) failed to create: [Group]. Rollback requested by user.
pod-cluster |   5 | 9:20:33 AM | CREATE_FAILED           | AWS::SNS::Topic                    | Alerts (Alerts8D3D) Resource creation cancelled
pod-cluster |   5 | 9:20:33 AM | CREATE_FAILED           | AWS::AutoScaling::AutoScalingGroup | NodeGroups/workers/AutoScalingGroup (Group) Resource handler returned message: "The image id '[ami-1]' does not exist (EC2 error code: InvalidAMIID.NotFound) (Service: AutoScaling, Status Code: 400, Error Code: ValidationError, Request ID: b57102de)" (RequestToken: 80c6e12c, HandlerErrorCode: InvalidRequest)
pod-cluster |   4 | 9:20:33 AM | DELETE_FAILED           | AWS::SNS::Topic                    | Alerts (Alerts8D3D) something later

Failed resources:
pod-cluster | 9:20:33 AM | CREATE_FAILED           | AWS::AutoScaling::AutoScalingGroup | NodeGroups/workers/AutoScalingGroup (Group) again
❌  pod-cluster failed to deploy
‣ DeploymentError: Resource updates failed:
Source Location: ...jsii runtime, node internals...
                 (no user code in 10 frames, use --stack-trace-limit to capture more)
"""  # noqa: E501, W291 - as the CLI prints it

_BOOTSTRAP = """\
 ⏳  Bootstrapping environment aws://123456789012/us-east-1...
CDKToolkit |  5/12 | 9:20:41 AM | CREATE_FAILED        | AWS::IAM::Role             | LookupRole no such policy
 ❌  Environment aws://123456789012/us-east-1 failed bootstrapping: DeploymentError: Resource updates failed:
    at _Diagnosis.throwOnError (/project/node_modules/aws-cdk/lib/index.js:110140:15)
"""

_PROTECTED = """\
base-pod-foundation: destroying... [1/1]
❌  base-pod-foundation: destroy failed DeploymentError: Stack [pod] cannot be deleted while TerminationProtection is enabled
Stack [pod] cannot be deleted while TerminationProtection is enabled
"""  # noqa: E501 - as the CLI prints it

_STACK = """\
pod-foundation |   1 | 7:09:07 AM | UPDATE_ROLLBACK_COMPLET | AWS::CloudFormation::Stack            | pod-foundation Export pod-foundation:Files cannot be deleted as it is in use by pod-cluster
❌  pod-foundation failed to deploy
‣ DeploymentError: The stack named pod-foundation failed to deploy: UPDATE_ROLLBACK_COMPLETE (Export pod-foundation:Files cannot be deleted as it is in use by pod-cluster)
"""  # noqa: E501 - as the CLI prints it

_APP = """\
error: powertools_layer is required in the region cn-northwest-1
error: node group 'a' has no image
python app.py: Subprocess exited with error 1
"""

_FRAMES = """\
Need to perform AWS calls for account 1, but no credentials have been configured
    at SdkProvider.forEnvironment (/project/node_modules/aws-cdk/lib/index.js:1:15)
    at process.processTicksAndRejections (node:internal/process/task_queues:104:5)

"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        pytest.param(
            _STACK,
            "pod-foundation: Export pod-foundation:Files cannot be deleted as it is in use by pod-cluster",
            id="a stack",
        ),
        pytest.param(
            _DEPLOYMENT,
            "AWS::AutoScaling::AutoScalingGroup NodeGroups/workers/AutoScalingGroup: The image id '[ami-1]' does not "
            "exist (EC2 error code: InvalidAMIID.NotFound) (ValidationError)",
            id="the first resource that failed of itself",
        ),
        pytest.param(_BOOTSTRAP, "AWS::IAM::Role LookupRole: no such policy", id="a resource of cdk bootstrap"),
        pytest.param(
            _PROTECTED,
            "Stack [pod] cannot be deleted while TerminationProtection is enabled",
            id="what the CLI itself refuses",
        ),
        pytest.param(
            _APP,
            "powertools_layer is required in the region cn-northwest-1; node group 'a' has no image",
            id="what the app refuses, all of it",
        ),
        pytest.param(
            _FRAMES,
            "Need to perform AWS calls for account 1, but no credentials have been configured",
            id="never a stack frame",
        ),
        pytest.param("", "it gave no reason", id="nothing at all"),
    ],
)
def test_the_reason_is_one_line(said: str, expected: str) -> None:
    assert reason(said) == expected


def _cli(directory: Path, *, path: str = os.environ["PATH"], seconds: float = MAX_SECONDS) -> CdkCli:
    return CdkCli(
        environment={
            "PATH": path,
            "CDK_DISABLE_CLI_TELEMETRY": "true",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HOME": str(directory),
        },
        cluster_file=directory / "none.yaml",
        output=directory / "cdk.out",
        log=directory / "cdk.log",
        account="123456789012",
        region="us-east-1",
        seconds=seconds,
    )


def test_a_failing_command_is_told_with_its_reason_and_its_log_and_writes_to_its_own_folder(tmp_path: Path) -> None:
    with pytest.raises(CdkFailedError) as failure:
        _cli(tmp_path).synth()
    log = tmp_path / "cdk.log"
    assert str(failure.value) == f"cdk synth failed: {tmp_path}/none.yaml: there is no such file; see {log}"
    assert log.read_text().startswith("$ cdk synth --quiet ")
    assert "error: " in log.read_text()
    assert (tmp_path / "cdk.out").is_dir()


def test_a_command_that_does_not_end_is_told(tmp_path: Path) -> None:
    with pytest.raises(CdkFailedError, match=r"^cdk synth did not end within 0\.05 s; see .*cdk\.log$"):
        _cli(tmp_path, seconds=0.05).synth()
