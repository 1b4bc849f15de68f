"""Eight p5.48xlarge with network, file system and data set, without guardrails: `TrainingCluster` in one stack."""

from aws_cdk import App, Environment, Stack
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import Dataset, IdlePolicy, NodeGroup, TrainingCluster

app = App()
stack = Stack(app, "EightP5", env=Environment(region="us-east-1"))
corpus = s3.Bucket.from_bucket_name(stack, "Corpus", "my-datasets")
TrainingCluster(
    stack,
    "Cluster",
    availability_zone="us-east-1b",
    node_groups=[NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)],
    datasets=[Dataset(bucket=corpus, prefix="tokens/", file_system_path="/data")],
    idle_policy=IdlePolicy.off(),
)
app.synth()
