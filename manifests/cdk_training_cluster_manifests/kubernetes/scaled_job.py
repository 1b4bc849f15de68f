"""Jobs of the messages of a queue: KEDA starts from zero, and nothing runs without messages."""

from collections.abc import Sequence

from cdk_training_cluster_manifests.kubernetes import kueue
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.jobs import image_of, pod_of_a_share, pod_template
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object


def scaled_jobs(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return the job of a message, on the first group that can run it; nothing without a queue or such a group.

    KEDA's operator reads the queue with its own IAM role: give its service account `keda-operator` in the namespace
    `keda` a pod identity that may call `sqs:GetQueueAttributes`.

    Args:
        wanted: The cluster.

    Source: https://keda.sh/docs/latest/reference/scaledjob-spec/
    """
    queue = wanted.settings.job_queue_url
    nodes = next((each for each in wanted.groups if each.accelerators and image_of(wanted, each)), None)
    if queue is None or nodes is None:
        return []
    team = next((each for each in wanted.teams if wanted.usable(each)[nodes.name]), wanted.teams[0])
    shares = sum(nodes.accelerators.values()) * wanted.usable(team)[nodes.name]
    pod = pod_of_a_share(wanted, nodes)
    pod["containers"][0]["command"] = ["bash", "-c", "echo replace this with what takes a message and works on it"]
    identity = an_object(
        "TriggerAuthentication",
        "job-queue",
        api="keda.sh/v1alpha1",
        namespace=team.namespace,
        spec={"podIdentity": {"provider": "aws"}},
    )
    scaled = an_object(
        "ScaledJob",
        "from-queue",
        api="keda.sh/v1alpha1",
        namespace=team.namespace,
        spec={
            "jobTargetRef": {"backoffLimit": 2, "template": pod_template(wanted, team, pod)},
            "pollingInterval": 30,
            "minReplicaCount": 0,
            "maxReplicaCount": shares,
            "successfulJobsHistoryLimit": 5,
            "failedJobsHistoryLimit": 5,
            "triggers": [
                {
                    "type": "aws-sqs-queue",
                    "authenticationRef": {"name": "job-queue"},
                    "metadata": {"queueURL": queue, "queueLength": "1", "awsRegion": wanted.region},
                }
            ],
        },
    )
    if wanted.settings.queues == "kueue":
        # KEDA gives its jobs the labels of the ScaledJob.
        scaled["metadata"]["labels"] = kueue.job_labels(wanted, team, "background")
    return [identity, scaled]
