"""A pipeline that deploys a training cluster to a test account first, and to production when a person has approved.

Change the repository, the connection and the accounts. Then bootstrap, once, the pipeline's account in each region
of a stage, and each stage's account in its region so that it trusts the pipeline's, and deploy the pipeline:

    cdk bootstrap aws://111122223333/us-east-1 aws://111122223333/us-west-2
    cdk bootstrap aws://222233334444/us-east-1 --trust 111122223333 \\
      --cloudformation-execution-policies arn:aws:iam::aws:policy/AdministratorAccess
    cdk bootstrap aws://333344445555/us-west-2 --trust 111122223333 \\
      --cloudformation-execution-policies arn:aws:iam::aws:policy/AdministratorAccess
    cdk deploy Pipeline --app "python examples/pipeline.py"

`requirements.txt` pins `cdk-training-cluster`: with another release, a commit would deploy its changes too.

Source: https://docs.aws.amazon.com/cdk/v2/guide/cdk-pipeline.html
"""

from aws_cdk import App, Environment, Stack, Stage, pipelines
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_training_cluster import Budget, Dataset, NodeGroup, TrainingCluster

_REPOSITORY = "my-organization/training"
_CONNECTION = "arn:aws:codeconnections:us-east-1:111122223333:connection/0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9"


class ClusterStage(Stage):
    """One cluster in one account and region, with all that it needs."""

    def __init__(self, scope: Construct, id: str, *, account: str, node_group: NodeGroup, zone: str) -> None:
        """Make the stack of the cluster.

        Args:
            scope: The pipeline's stack.
            id: The stage's name, the beginning of its stack's.
            account: The id of the account.
            node_group: What the cluster is made of.
            zone: The Availability Zone, such as `us-east-1b`.
        """
        super().__init__(scope, id, env=Environment(account=account, region=zone[:-1]))
        stack = Stack(self, "Training", termination_protection=True)
        corpus = s3.Bucket.from_bucket_name(stack, "Corpus", f"my-training-corpus-{account}")
        TrainingCluster(
            stack,
            "Llama",
            cluster_name=f"llama-{id.lower()}",
            availability_zone=zone,
            node_groups=[node_group],
            datasets=[Dataset(bucket=corpus, prefix="tokens/", file_system_path="/data")],
            budget=Budget(monthly_usd=30_000, emails=["ml@example.com"]),
        )


class PipelineStack(Stack):
    """The pipeline, which synthesizes the clusters anew with every commit, and deploys what has changed."""

    def __init__(self, scope: Construct, id: str, *, account: str) -> None:
        """Make the pipeline.

        Args:
            scope: The app.
            id: The stack's name.
            account: The id of the account that the pipeline runs in.
        """
        super().__init__(scope, id, env=Environment(account=account, region="us-east-1"))
        source = pipelines.CodePipelineSource.connection(_REPOSITORY, "main", connection_arn=_CONNECTION)
        pipeline = pipelines.CodePipeline(
            self,
            "Pipeline",
            # The stages are in other accounts; the key of what is passed between them is the pipeline's.
            cross_account_keys=True,
            use_pipeline_role_for_actions=True,
            code_build_defaults=pipelines.CodeBuildOptions(
                partial_build_spec=codebuild.BuildSpec.from_object(
                    {"phases": {"install": {"runtime-versions": {"nodejs": "22", "python": "3.13"}}}}
                )
            ),
            synth=pipelines.ShellStep(
                "Synth",
                input=source,
                commands=[
                    "npm install --global aws-cdk@2.1148.1",
                    "pip install --requirement requirements.txt",
                    'cdk synth --app "python examples/pipeline.py"',
                ],
            ),
        )
        small = NodeGroup("workers", instance_types=["g5.xlarge"], count=1)
        pipeline.add_stage(
            ClusterStage(self, "Test", account="222233334444", node_group=small, zone="us-east-1b"),
        )
        large = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)
        pipeline.add_stage(
            ClusterStage(self, "Production", account="333344445555", node_group=large, zone="us-west-2b"),
            pre=[pipelines.ManualApprovalStep("Deploy", comment="Eight p5.48xlarge start when this is deployed.")],
        )
        pipeline.build_pipeline()
        # CDK allows the action under its former name alone, and IAM wants the name in the connection's ARN.
        # https://docs.aws.amazon.com/dtconsole/latest/userguide/security-iam.html
        pipeline.pipeline.add_to_role_policy(
            iam.PolicyStatement(actions=["codeconnections:UseConnection"], resources=[_CONNECTION])
        )


if __name__ == "__main__":
    app = App()
    PipelineStack(app, "Pipeline", account="111122223333")
    app.synth()
