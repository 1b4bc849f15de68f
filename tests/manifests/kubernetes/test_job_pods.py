"""Pods of jobs have the job role by their service account, and take nothing else of their node."""

from typing import Any

import pytest

from admission_policies import POLICY, is_matched, refusals
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_manifests.kubernetes.charts import releases
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.reading import wanted_of
from examples import PROJECT
from kubernetes_folder import FOLDERS, GOVERNED, objects, on_hyperpod, wanted

_NODE = "/etc/cdk-training-cluster"
every_folder = pytest.mark.parametrize("cluster", [pytest.param(each, id=name) for name, each in FOLDERS.items()])


def _pods(value: Any) -> list[dict[str, Any]]:
    """The pods of jobs in objects, wherever they are."""
    if isinstance(value, list):
        return [pod for each in value for pod in _pods(each)]
    if not isinstance(value, dict) or value.get("kind") in ("DaemonSet", "Application"):
        return []
    if "containers" in value and "restartPolicy" in value:
        return [value]
    return _pods([*value.values()])


_CONTROLLER = "system:serviceaccount:kube-system:job-controller"


def _request(spec: dict[str, Any], username: str = _CONTROLLER, owner: str = "Job") -> dict[str, Any]:
    """The request for a new pod, of a job unless told otherwise."""
    owners = [{"kind": owner, "controller": True}] if owner else []
    pod = {"metadata": {"ownerReferences": owners}, "spec": spec}
    return {"object": pod, "oldObject": None, "request": {"userInfo": {"username": username}}}


def _policy(cluster: KubernetesCluster, name: str = "cdk-training-cluster-job-pods") -> list[dict[str, Any]]:
    found = objects(cluster, POLICY)
    return [each["spec"] for each in found if each["metadata"]["name"] == name]


@every_folder
def test_every_pod_of_a_job_has_the_service_account_of_its_team(cluster: KubernetesCluster) -> None:
    accounts = [each["metadata"] for each in objects(cluster, "ServiceAccount")]
    named = [each["namespace"] for each in accounts if each["name"] == "cluster-job"]
    assert named == [team.namespace for team in cluster.teams]
    pods = _pods([*objects(cluster)])
    assert pods
    assert {pod["serviceAccountName"] for pod in pods} == {"cluster-job"}


@pytest.mark.parametrize("name", ["base-pod", "hyperpod-eks"])
def test_the_stack_gives_the_role_in_the_namespaces_of_the_folder(name: str) -> None:
    file = read_cluster_file(PROJECT / f"clusters/{name}.yaml")
    settings: Any = file.orchestrator.to_orchestrator()
    assert [*settings.settings.job_namespaces] == [team.namespace for team in wanted_of(file).teams]


def test_the_namespaces_of_task_governance_have_its_prefix() -> None:
    assert [team.namespace for team in GOVERNED.teams] == ["hyperpod-ns-research", "hyperpod-ns-products"]


@every_folder
def test_the_policy_takes_the_pods_of_the_folder(cluster: KubernetesCluster) -> None:
    for spec in _policy(cluster):
        pods = _pods([*objects(cluster)])
        assert [refusals(spec, _request(pod)) for pod in pods] == [[]] * len(pods)


def test_recipes_of_hyperpod_need_what_the_policy_refuses() -> None:
    assert _policy(on_hyperpod()) == []


def _container(**security: Any) -> dict[str, Any]:
    return {"name": "node", "securityContext": security}


def _tolerating(name: str, amount: str) -> dict[str, Any]:
    containers = [{"name": "node", "resources": {"limits": {name: amount, "memory": "4Gi"}}}]
    return {"containers": containers, "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}]}


def _asked(handler: str, **asked: Any) -> dict[str, Any]:
    return {handler: {"httpGet": asked}}


def _mounted(path: str, **mount: Any) -> dict[str, Any]:
    volumes = [{"name": "host", "hostPath": {"path": path}}, {"name": "shm", "emptyDir": {}}]
    mounts = [{"name": "shm", "mountPath": "/dev/shm"}, {"name": "host", "mountPath": "/host", **mount}]
    return {"containers": [{"name": "node", "volumeMounts": mounts}], "volumes": volumes}


@pytest.mark.parametrize(
    ("pod", "refused"),
    [
        ({"containers": [{"name": "node"}]}, None),
        ({"containers": [_container(capabilities={"add": ["IPC_LOCK"]}, privileged=False)]}, None),
        (_mounted(_NODE, readOnly=True), None),
        ({"containers": [], "hostNetwork": False}, None),
        ({"containers": [], "hostNetwork": True}, "network"),
        ({"containers": [], "hostPID": True}, "hostPID"),
        ({"containers": [], "hostIPC": True}, "hostIPC"),
        ({"containers": [_container(privileged=True)]}, "be privileged"),
        ({"containers": [], "initContainers": [_container(privileged=True)]}, "be privileged"),
        ({"containers": [], "ephemeralContainers": [_container(privileged=True)]}, "be privileged"),
        ({"containers": [_container(capabilities={"add": ["IPC_LOCK", "SYS_ADMIN"]})]}, "have capabilities but"),
        ({"containers": [_container(capabilities={"add": ["ALL"]})]}, "have capabilities but"),
        (_mounted("/", readOnly=True), "mount folders of its node"),
        (_mounted(f"{_NODE}/..", readOnly=True), "mount folders of its node"),
        (_mounted(_NODE), "mount folders of its node"),
        (_mounted(_NODE, readOnly=False), "mount folders of its node"),
        ({"containers": [{"name": "node", "ports": [{"containerPort": 29500}]}]}, None),
        ({"containers": [{"name": "node", "ports": [{"containerPort": 80, "hostPort": 10250}]}]}, "take ports"),
        ({"containers": [_asked("livenessProbe", port=8080)]}, None),
        ({"containers": [_asked("livenessProbe", port=8080, host="127.0.0.1")]}, "have its node ask other hosts"),
        ({"containers": [{"lifecycle": _asked("preStop", host="10.0.0.2")}]}, "have its node ask other hosts"),
        ({"containers": [], "volumes": [{"name": "r", "gitRepo": {"repository": "/opt"}}]}, "have its node clone"),
        ({"containers": [], "terminationGracePeriodSeconds": 900}, None),
        ({"containers": [], "terminationGracePeriodSeconds": 10**9}, "hold a node longer than 900 seconds"),
        ({"containers": [], "nodeName": "ip-10-0-1-17.ec2.internal"}, "be on nodes with accelerators without one"),
        ({"containers": [], "tolerations": [{"operator": "Exists"}]}, "be on nodes with accelerators without one"),
        (_tolerating("vpc.amazonaws.com/efa", "8"), "be on nodes with accelerators without one"),
        (_tolerating("nvidia.com/gpu", "0"), "be on nodes with accelerators without one"),
        (_tolerating("nvidia.com/gpu", "8"), None),
        (_tolerating("nvidia.com/mig-1g.10gb", "1"), None),
        (_tolerating("aws.amazon.com/neuroncore", "1"), None),
        ({"containers": [_container(procMount="Unmasked")]}, "be privileged or see all of /proc"),
        ({"containers": [], "priorityClassName": "urgent"}, None),
        ({"containers": [], "priorityClassName": "system-node-critical"}, "go before the jobs of other teams"),
    ],
)
def test_the_policy_refuses_what_reaches_the_node(pod: dict[str, Any], refused: str | None) -> None:
    (spec,) = _policy(wanted())
    said = refusals(spec, _request(pod))
    assert len(said) == (refused is not None)
    assert (refused or "") in " ".join(said)


def test_the_policy_looks_at_the_pods_of_teams_alone() -> None:
    (spec,) = _policy(wanted(teams=[{"name": "research"}, {"name": "products"}]))
    (selected,) = spec["matchConstraints"]["namespaceSelector"]["matchExpressions"]
    assert selected == {
        "key": "kubernetes.io/metadata.name",
        "operator": "In",
        "values": ["research", "products"],
    }
    looked_at = {each["resources"][0]: each["operations"] for each in spec["matchConstraints"]["resourceRules"]}
    assert looked_at == {"pods": ["CREATE", "UPDATE"], "pods/ephemeralcontainers": ["UPDATE"]}


@pytest.mark.parametrize(
    ("request_", "old", "new", "is_judged"),
    [
        ({}, None, {}, True),
        ({}, {}, {"tolerations": [{"operator": "Exists"}]}, True),
        # Controllers remove finalizers of pods that were made before the policy with an update.
        ({}, {"hostNetwork": True}, {"hostNetwork": True}, False),
        ({"subResource": "ephemeralcontainers"}, {}, {}, True),
    ],
)
def test_the_policy_judges_new_pods_and_what_an_update_adds(
    request_: dict[str, str], old: dict[str, Any] | None, new: dict[str, Any], is_judged: bool
) -> None:
    (spec,) = _policy(wanted())
    before = None if old is None else {"spec": old}
    assert is_matched(spec, {"request": request_, "oldObject": before, "object": {"spec": new}}) is is_judged


@pytest.mark.parametrize(
    ("queue", "is_refused"), [({"queue": "research"}, False), ({"queue": "products"}, True), ({}, True)]
)
def test_jobs_of_volcano_are_in_the_queue_of_their_team_alone(queue: dict[str, str], is_refused: bool) -> None:
    cluster = wanted(teams=[{"name": "research"}, {"name": "products"}], queues="volcano")
    (spec,) = _policy(cluster, "cdk-training-cluster-job-queues")
    group = {"object": {"metadata": {"namespace": "research"}, "spec": queue}}
    assert (refusals(spec, group) != []) is is_refused
    assert _policy(wanted(), "cdk-training-cluster-job-queues") == []


def test_pods_that_volcano_schedules_are_in_the_queue_of_their_team() -> None:
    cluster = FOLDERS["volcano"]
    of_teams = {each.namespace: each.name for each in cluster.teams}
    jobs = {each["kind"]: each for each in objects(cluster, "Job", "ScaledJob")}
    templates = {
        "Job": jobs["Job"]["spec"]["template"],
        "ScaledJob": jobs["ScaledJob"]["spec"]["jobTargetRef"]["template"],
    }
    for kind, template in templates.items():
        assert template["spec"]["schedulerName"] == "volcano"
        team = of_teams[jobs[kind]["metadata"]["namespace"]]
        assert template["metadata"]["annotations"] == {"scheduling.volcano.sh/queue-name": team}
    # Others get the queue of their namespace from this webhook, which the chart leaves out.
    (chart,) = (each for each in releases(cluster) if each.name == "volcano")
    assert "/podgroups/mutate" in chart.values["custom"]["enabled_admissions"].split(",")


@pytest.mark.parametrize(
    ("scheduler", "priority", "is_refused"),
    [("volcano", "urgent", False), ("default-scheduler", "", False), ("default-scheduler", "urgent", True)],
)
def test_with_volcano_no_other_scheduler_preempts_for_a_team(scheduler: str, priority: str, is_refused: bool) -> None:
    pod = {"containers": [], "schedulerName": scheduler, "priorityClassName": priority}
    (spec,) = _policy(wanted(queues="volcano"))
    assert (refusals(spec, _request(pod)) != []) is is_refused
    (spec,) = _policy(wanted())
    assert refusals(spec, _request(pod)) == []


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "aws.amazon.com/neuron"])
@pytest.mark.parametrize(
    ("scheduler", "is_refused"),
    [({"schedulerName": "volcano"}, False), ({}, True), ({"schedulerName": "default-scheduler"}, True)],
)
def test_with_volcano_pods_get_accelerators_from_its_scheduler_alone(
    name: str, scheduler: dict[str, str], is_refused: bool
) -> None:
    containers = [{"name": "node", "resources": {"limits": {name: "1"}}}]
    (spec,) = _policy(wanted(queues="volcano"))
    request = _request({"containers": containers, **scheduler})
    assert bool(refusals(spec, request)) is is_refused
    assert refusals(spec, _request({"containers": [{"name": "node"}], **scheduler})) == []
    # An older pod keeps its scheduler; an update cannot add a request.
    assert refusals(spec, {**request, "oldObject": request["object"]}) == []


@pytest.mark.parametrize("name", ["nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "aws.amazon.com/neuron"])
@pytest.mark.parametrize(
    ("username", "owner", "is_refused"),
    [
        (_CONTROLLER, "Job", False),
        ("system:kube-controller-manager", "Job", False),
        ("system:serviceaccount:kube-system:replicaset-controller", "ReplicaSet", True),
        ("arn:aws:iam::111122223333:role/research", "", True),
        # Who makes a pod may write any owner into it.
        ("arn:aws:iam::111122223333:role/research", "Job", True),
        ("system:serviceaccount:research:cluster-job", "Job", True),
    ],
)
def test_with_kueue_pods_get_accelerators_as_pods_of_a_job_alone(
    name: str, username: str, owner: str, is_refused: bool
) -> None:
    containers = [{"name": "node", "resources": {"limits": {name: "1"}}}]
    (spec,) = _policy(wanted())
    request = _request({"containers": containers}, username, owner)
    assert bool(refusals(spec, request)) is is_refused
    assert refusals(spec, _request({"containers": [{"name": "node"}]}, username, owner)) == []
    # An update cannot add a request, and one by an operator is none of the job controller.
    assert refusals(spec, {**request, "oldObject": request["object"]}) == []
