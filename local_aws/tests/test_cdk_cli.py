"""The real CDK CLI against the local AWS: bootstrap, deploy, fail with the reason, and recover."""

import subprocess
from pathlib import Path

from aws_cdk import App, CfnOutput, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_

from local_aws import LocalAws
from max_seconds import MAX_SECONDS

CDK = Path(__file__).parents[2] / "node_modules" / ".bin" / "cdk"


def _synthesized(folder: Path, aws: LocalAws, *, partitions: int | None) -> Path:
    """Synthesize a stack with an asset and a placement group, which AWS refuses if it has partitions."""
    app = App(outdir=str(folder / f"cdk.out-{partitions}"), analytics_reporting=False)
    stack = Stack(app, "tiny", env=Environment(account=aws.account, region=aws.region))
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / "index.py").write_text("def handler(event, context):\n    return event\n")
    function = lambda_.Function(
        stack,
        "Function",
        runtime=lambda_.Runtime.PYTHON_3_13,
        handler="index.handler",
        code=lambda_.Code.from_asset(str(source)),
    )
    ec2.CfnPlacementGroup(stack, "Placement", strategy="cluster", partition_count=partitions)
    CfnOutput(stack, "FunctionName", value=function.function_name)
    return Path(app.synth().directory)


def test_the_cdk_cli_bootstraps_deploys_and_prints_why_a_deploy_fails(tmp_path: Path, aws: LocalAws) -> None:
    def cdk(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(CDK), *arguments],
            cwd=tmp_path,
            env=aws.environment(),
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    def deploy(assembly: Path) -> subprocess.CompletedProcess[str]:
        return cdk("deploy", "--app", str(assembly), "--method=direct", "--require-approval", "never")

    api = aws.client("cloudformation")
    bootstrapped = cdk("bootstrap", f"aws://{aws.account}/{aws.region}")
    assert bootstrapped.returncode == 0, bootstrapped.stderr
    toolkit = api.describe_stack_resources(StackName="CDKToolkit")["StackResources"]
    assert {resource["ResourceType"] for resource in toolkit} == {
        "AWS::ECR::Repository",
        "AWS::IAM::Policy",
        "AWS::IAM::Role",
        "AWS::S3::Bucket",
        "AWS::S3::BucketPolicy",
        "AWS::SSM::Parameter",
    }
    assert {resource["ResourceStatus"] for resource in toolkit} == {"CREATE_COMPLETE"}

    good = _synthesized(tmp_path, aws, partitions=None)
    deployed = deploy(good)
    assert deployed.returncode == 0, deployed.stderr
    before = api.describe_stack_resources(StackName="tiny")["StackResources"]

    wrong = _synthesized(tmp_path, aws, partitions=3)
    failed = deploy(wrong)
    assert failed.returncode == 1
    said = " ".join(failed.stderr.split())  # the CLI breaks lines where its terminal would end
    assert "Partition count may not be specified for placement groups with the 'cluster' strategy." in said
    assert "InvalidParameterCombination" in said
    assert api.describe_stacks(StackName="tiny")["Stacks"][0]["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    after = api.describe_stack_resources(StackName="tiny")["StackResources"]
    assert {r["PhysicalResourceId"] for r in after} == {r["PhysicalResourceId"] for r in before}

    destroyed = cdk("destroy", "--app", str(good), "--force")
    assert destroyed.returncode == 0, destroyed.stderr
    assert [stack["StackName"] for stack in api.describe_stacks()["Stacks"] if stack["StackName"] == "tiny"] == []
