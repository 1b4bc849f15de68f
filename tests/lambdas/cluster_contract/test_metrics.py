"""The namespaces of CloudWatch, by which IAM keeps what one role reports from another."""

from cluster_contract.metrics import FUNCTION_NAMESPACE, job_namespace, node_namespace


def test_no_two_clusters_and_no_two_roles_share_a_namespace_whatever_the_clusters_are_called() -> None:
    names = ("pod", "Pod", "pod/x", "Functions", "Jobs", "Nodes", "Jobs/pod", "Nodes/pod", "../Jobs/pod")
    namespaces = [
        FUNCTION_NAMESPACE,
        *(node_namespace(name) for name in names),
        *(job_namespace(name) for name in names),
    ]
    assert len(set(namespaces)) == len(namespaces)


def test_the_namespace_of_the_longest_name_is_no_longer_than_cloudwatch_allows() -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
    assert len(node_namespace("x" * 128)) <= 255
