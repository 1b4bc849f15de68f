"""A file system with a data set that is preloaded and released."""

from aws_cdk import Duration, Stack
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import ClusterNetwork, Dataset, TrainingFileSystem
from synthesis import ZONE


def hydrated_file_system(stack: Stack) -> TrainingFileSystem:
    """Make it, with its network."""
    bucket = s3.Bucket.from_bucket_name(stack, "Corpus", "corpus")
    dataset = Dataset(
        bucket=bucket, file_system_path="/data", prefix="tokens/", preload=True, release_after=Duration.days(30)
    )
    network = ClusterNetwork(stack, "FilesNetwork", availability_zone=ZONE)
    return TrainingFileSystem(stack, "Files", network=network, datasets=[dataset])
