"""What the pods of jobs may do in AWS, and what they may not take of their nodes."""

from collections.abc import Sequence

from cdk_training_cluster.nodes.job_role import JOB_SERVICE_ACCOUNT
from cdk_training_cluster_manifests.kubernetes.cluster import KubernetesCluster
from cdk_training_cluster_manifests.kubernetes.cluster_run import NODE_FOLDERS
from cdk_training_cluster_manifests.kubernetes.group_nodes import GPU, NEURON
from cdk_training_cluster_manifests.kubernetes.objects import Object, an_object
from cdk_training_cluster_manifests.kubernetes.quotas import PRIORITIES, QUEUE_ANNOTATION

_NAME, _QUEUES = "cdk-training-cluster-job-pods", "cdk-training-cluster-job-queues"
_API = "admissionregistration.k8s.io/v1"

# What Kubernetes' baseline allows, and what RDMA, debuggers and real-time threads need.
# https://kubernetes.io/docs/concepts/security/pod-security-standards/#baseline
_CAPABILITIES = (
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
    *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT", "IPC_LOCK", "SYS_NICE", "SYS_PTRACE", "SYS_RESOURCE"),
)

# The kubelet asks from the network of the node.
# https://github.com/kubernetes/kubernetes/issues/99425
_HANDLERS = ("livenessProbe", "readinessProbe", "startupProbe", "lifecycle.?postStart", "lifecycle.?preStop")

# A team waits that long for its own nodes when Kueue takes them back from the jobs of others.
_MAX_GRACE_SECONDS = 900

# Whoever is on a node can have it repaired, and fills its disk. An empty key tolerates all taints.
_TAINTS = ("", GPU, NEURON)
# Kubernetes' own scheduler looks at no queue and preempts the pods of all teams; Volcano those of the same queue.
_OF_VOLCANO = {
    "ask for accelerators outside of the queue of its team: set schedulerName to volcano": (
        "object.spec.?schedulerName.orValue('') == 'volcano' || oldObject != null || !variables.accelerated"
    ),
    "have a priority without schedulerName volcano": (
        "object.spec.?schedulerName.orValue('') == 'volcano' || "
        f"!(object.spec.?priorityClassName.orValue('') in {[*PRIORITIES]})"
    ),
}
# Kueue holds jobs until their queue has room, and starts pods without a job at once. The job controller makes the
# pods of jobs; EKS gives each controller a service account.
# https://kubernetes.io/docs/reference/access-authn-authz/rbac/#controller-roles
# https://docs.aws.amazon.com/eks/latest/best-practices/control-plane.html
_OF_KUEUE = {
    "ask for accelerators without a job, which waits in the queue of its team: make a Job, a JobSet or a TrainJob": (
        "oldObject != null || !variables.accelerated || (request.userInfo.username.matches("
        "'^system:(serviceaccount:kube-system:.+|kube-controller-manager)$') && "
        "object.metadata.?ownerReferences.orValue([]).exists(each, each.kind == 'Job'))"
    )
}
_DEVICES = "each.?resources.?limits.orValue({})"


def service_accounts(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return the service account of each team, whose pods get the job role.

    Args:
        wanted: The cluster.
    """
    return [an_object("ServiceAccount", JOB_SERVICE_ACCOUNT, namespace=team.namespace) for team in wanted.teams]


def job_policy(wanted: KubernetesCluster) -> Sequence[Object]:
    """Return what keeps pods of teams from their node, whose role may do more than a job may, and from other teams.

    A pod in the node's network reaches the instance metadata service, and a privileged one the whole node. One with a
    priority of the system ends pods of other teams, and one that ignores its end for days keeps their nodes. One with
    accelerators that no queue holds takes nodes that no queue takes back. The
    policy looks at new pods and new tolerations: what else it judges of a pod cannot change, and a controller has to
    be able to remove a finalizer from an older one. The baseline of Kubernetes would also refuse the folders that
    jobs read. Recipes of HyperPod need what it refuses, so teams on HyperPod have no policy.

    Args:
        wanted: The cluster.

    Source: https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/
    """
    if wanted.hyperpod:
        return []
    volcano = wanted.settings.queues == "volcano"
    of_pods = {"apiGroups": [""], "apiVersions": ["v1"]}
    lists = (f"object.spec.?{kind}.orValue([])" for kind in ("containers", "initContainers", "ephemeralContainers"))
    host = "object.spec.?{}.orValue(false)".format
    hosts = (f"each.?{one}.?{kind}.?host.orValue('') == ''" for one in _HANDLERS for kind in ("httpGet", "tcpSocket"))
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            **_of_teams(wanted),
            "resourceRules": [
                {**of_pods, "operations": ["CREATE", "UPDATE"], "resources": ["pods"]},
                {**of_pods, "operations": ["UPDATE"], "resources": ["pods/ephemeralcontainers"]},
            ],
        },
        "matchConditions": [
            {
                "name": "is-new-or-tolerates-more",
                "expression": "oldObject == null || request.?subResource.orValue('') != '' || "
                "object.spec.?tolerations.orValue([]) != oldObject.spec.?tolerations.orValue([])",
            }
        ],
        "variables": [
            {"name": "containers", "expression": " + ".join(lists)},
            {"name": "folders", "expression": "object.spec.?volumes.orValue([]).filter(each, has(each.hostPath))"},
            {
                "name": "accelerated",
                "expression": f"variables.containers.exists(each, {_DEVICES}.exists(name, {_DEVICES}[name] != '0' && "
                f"(name.startsWith('{GPU.partition('/')[0]}/') || name.startsWith('{NEURON}'))))",
            },
        ],
        "validations": [
            {"expression": expression, "message": f"a pod of a job may not {deed}"}
            for deed, expression in {
                "be in the network or see the processes of its node: leave hostNetwork, hostPID and hostIPC out": (
                    f"!({' || '.join(host(name) for name in ('hostNetwork', 'hostPID', 'hostIPC'))})"
                ),
                "be privileged or see all of /proc": (
                    "variables.containers.all(each, !each.?securityContext.?privileged.orValue(false) "
                    "&& each.?securityContext.?procMount.orValue('Default') == 'Default')"
                ),
                # Before 1.33, root on the node clones them, from folders of the node too.
                # https://github.com/kubernetes/kubernetes/issues/130786
                "have its node clone a repository: leave gitRepo out": (
                    "!object.spec.?volumes.orValue([]).exists(each, has(each.gitRepo))"
                ),
                "take ports of its node: leave hostPort out": (
                    "variables.containers.all(each, each.?ports.orValue([]).all(one, one.?hostPort.orValue(0) == 0))"
                ),
                "have its node ask other hosts: leave host out of probes and hooks": (
                    f"variables.containers.all(each, {' && '.join(hosts)})"
                ),
                "go before the jobs of other teams: leave the priorities of the system out": (
                    "!object.spec.?priorityClassName.orValue('').startsWith('system-')"
                ),
                **(_OF_VOLCANO if volcano else _OF_KUEUE),
                f"hold a node longer than {_MAX_GRACE_SECONDS} seconds: lower terminationGracePeriodSeconds": (
                    f"object.spec.?terminationGracePeriodSeconds.orValue(0) <= {_MAX_GRACE_SECONDS}"
                ),
                "be on nodes with accelerators without one: ask for one, or leave nodeName and the toleration out": (
                    "object.spec.?nodeName.orValue('') == '' && "
                    f"(!object.spec.?tolerations.orValue([]).exists(each, each.?key.orValue('') in {[*_TAINTS]}) || "
                    "variables.accelerated)"
                ),
                f"have capabilities but {', '.join(_CAPABILITIES)}": (
                    "variables.containers.all(each, each.?securityContext.?capabilities.?add.orValue([])"
                    f".all(name, name in {[*_CAPABILITIES]}))"
                ),
                f"mount folders of its node but {', '.join(NODE_FOLDERS)}, read-only": (
                    f"variables.folders.all(each, each.hostPath.path in {[*NODE_FOLDERS]}) && "
                    "variables.containers.all(each, each.?volumeMounts.orValue([]).all(mount, "
                    "mount.?readOnly.orValue(false) || !variables.folders.exists(one, one.name == mount.name)))"
                ),
            }.items()
        ],
    }
    return [*_bound(_NAME, spec), *(_bound(_QUEUES, _queue_policy(wanted)) if volcano else ())]


def _of_teams(wanted: KubernetesCluster) -> Object:
    names = [team.namespace for team in wanted.teams]
    selected = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}
    return {"namespaceSelector": {"matchExpressions": [selected]}}


def _queue_policy(wanted: KubernetesCluster) -> Object:
    """Return what keeps jobs in the queue of their team: Volcano itself takes the name of any queue.

    Source: https://github.com/volcano-sh/volcano/issues/5251
    """
    groups = {"apiGroups": ["scheduling.volcano.sh"], "apiVersions": ["v1beta1"], "resources": ["podgroups"]}
    queues = {team.namespace: team.name for team in wanted.teams}
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            **_of_teams(wanted),
            "resourceRules": [{**groups, "operations": ["CREATE", "UPDATE"]}],
        },
        "variables": [],
        "validations": [
            {
                "expression": f"object.spec.?queue.orValue('') == {queues}[object.metadata.namespace]",
                "message": f"a job is in the queue of its team alone: name it with the annotation {QUEUE_ANNOTATION}",
            }
        ],
    }


def _bound(name: str, spec: Object) -> Sequence[Object]:
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return [
        an_object("ValidatingAdmissionPolicy", name, api=_API, spec=spec),
        an_object("ValidatingAdmissionPolicyBinding", name, api=_API, spec=binding),
    ]
