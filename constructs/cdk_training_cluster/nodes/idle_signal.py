"""What else than its accelerators must say that a node is idle."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from cdk_training_cluster.validation.bounds import Number, OneOf, Text
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.idle import PERIOD, Signal, SignalKind
from cluster_contract.metrics import NODE_METRICS

MAX_MIB_PER_SECOND = 1e99
"""More than a limit on traffic needs: its bytes in a period are still within CloudWatch's numbers, up to 2**360.

Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDatum.html
"""

_MIB = 1024 * 1024
STATISTICS = ("Average", "Maximum", "Minimum", "SampleCount", "Sum")
ABOVE_0 = Number(above=0)
# It is turned into bytes.
MIB_PER_SECOND = Number(above=0, maximum=MAX_MIB_PER_SECOND, known=True)


@dataclass(frozen=True, kw_only=True)
class IdleSignal:
    """Say what must agree, beside utilization, before a node is idle. Make one with a method of the class.

    Of each signal every period of the window must lie below its threshold. One that has no data leaves the node
    unknown, which is never stopped; only no heartbeat says that it is idle.

    Attributes:
        name: What it measures.
        settings: What the function reads for it.
    """

    name: str
    settings: tuple[Signal, ...]

    HOST: ClassVar[str] = "host"
    """The name of the signal that every policy has unless it says otherwise."""

    @staticmethod
    @checked
    def host(
        below_vcpus: Annotated[float, ABOVE_0] = 0.5, below_mib_per_second: Annotated[float, MIB_PER_SECOND] = 0.125
    ) -> "IdleSignal":
        """Look at the CPUs and at what goes over the network interfaces, in and out.

        Every policy does, unless its `host_activity` is False; this one has other thresholds. Tokenising,
        downloading, compiling and uploading checkpoints leave accelerators at 0 % and move these. The nodes of node
        groups report their CPU use themselves (`cpu_usage_active`, one series a node), which is turned into vCPUs:
        one process on one of 192 is 0.52 %. `NetworkIn` and `NetworkOut` are EC2's own metrics, which need no agent
        and cost nothing. A period is five minutes, as basic monitoring has it, and a point the average or sum over
        all of it; of a period that is not over, only what is certain of the whole. EC2's metrics of disks are not
        looked at: there are none of local NVMe disks, and none of EBS volumes where the hypervisor is Xen.

        Instances of no node group are judged by EC2's `CPUUtilization`. On Nitro it has whole percents, rounded
        down: what uses less than 1 %, which is 1.92 of 192 vCPUs, shows 0, and the threshold holds only where it is
        more than that. Let jobs on such instances send heartbeats.

        What is not seen: a process that takes less than half a vCPU and moves less than 128 KiB a second, such as
        one that waits; and what bypasses CPU and network interfaces, such as reads over EFA.

        Args:
            below_vcpus: Idle is a node that uses less, in vCPUs. Agents and file-system client take a tenth or two.
                Default: - 0.5.
            below_mib_per_second: Idle is a node with less than that in each direction, in MiB a second.
                Default: - 0.125.

        Raises:
            ValueError: Either is not a number above 0, or the second is above `MAX_MIB_PER_SECOND`.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_metrics_with_cloudwatch.html
        """
        limit = below_mib_per_second * _MIB
        cpu = Signal(kind=SignalKind.CPU, below=below_vcpus)
        return IdleSignal(name=IdleSignal.HOST, settings=(cpu, Signal(kind=SignalKind.NETWORK, below=limit)))

    @staticmethod
    @checked
    def network(below_mib_per_second: Annotated[float, MIB_PER_SECOND] = 1.0) -> "IdleSignal":
        """Look at what goes over the network interfaces, in and out.

        It is EC2's own metric and needs no agent. EFA traffic is not in it, since that bypasses the operating
        system; see `efa()`.

        Args:
            below_mib_per_second: Idle is a node with less than that in each direction, in MiB a second.
                Default: - 1.

        Raises:
            ValueError: It is not a number above 0 and at most `MAX_MIB_PER_SECOND`.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/viewing_metrics_with_cloudwatch.html
        """
        limit = below_mib_per_second * _MIB
        return IdleSignal(name="network", settings=(Signal(kind=SignalKind.NETWORK, below=limit),))

    @staticmethod
    @checked
    def efa(below_mib_per_second: Annotated[float, MIB_PER_SECOND] = 1.0) -> "IdleSignal":
        """Look at what goes over the Elastic Fabric Adapters, in and out.

        The nodes then report it, and what is sent again: three series more an instance, which CloudWatch bills. They
        need a CloudWatch agent that knows EFA; an older one refuses its whole configuration, and a node whose agent
        reports nothing is unknown and never stopped.

        Args:
            below_mib_per_second: Idle is a node whose adapters together have less than that in each direction, in
                MiB a second. Default: - 1.

        Raises:
            ValueError: It is not a number above 0 and at most `MAX_MIB_PER_SECOND`.

        Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-EFA.html
        """
        # The agent reports what came since the last time, so that the sum is that of the period. The function knows
        # the namespace in which nodes report.
        limit = below_mib_per_second * _MIB * PERIOD.total_seconds()
        return IdleSignal(
            name="efa",
            settings=tuple(_metric("", metric, "Sum", limit) for metric in NODE_METRICS.efa_traffic),
        )

    @staticmethod
    @checked
    def gpu_memory(below_mib: Annotated[float, ABOVE_0] = 2048) -> "IdleSignal":
        """Look at the memory in use on the fullest NVIDIA GPU: a notebook that waits holds it.

        Args:
            below_mib: Idle is a node with less than that, in MiB. Default: - 2048.

        Raises:
            ValueError: It is not a number above 0.

        Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html
        """
        return IdleSignal(name="gpu_memory", settings=(Signal(kind=SignalKind.GPU_MEMORY, below=below_mib),))

    @staticmethod
    def heartbeat() -> "IdleSignal":
        """Look for a heartbeat that jobs send: a node with any in the window is at work.

        A job sends the metric `JobHeartbeat`, with any value and the one dimension `InstanceId`, to the namespace
        `CdkTrainingCluster/Jobs/<cluster name>`, at least every five minutes.
        """
        return IdleSignal(name="heartbeat", settings=(Signal(kind=SignalKind.HEARTBEAT),))

    @staticmethod
    def session() -> "IdleSignal":
        """Use sessions: a node with an open session of Session Manager is at work.

        Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeSessions.html
        """
        return IdleSignal(name="session", settings=(Signal(kind=SignalKind.SESSION),))

    @staticmethod
    @checked
    def metric(
        namespace: Annotated[str, Text("text, such as 'CWAgent'", "metricNamespace")],
        name: Annotated[str, Text("text, such as 'mem_used_percent'", "metricName")],
        statistic: Annotated[str, OneOf(STATISTICS)],
        below: Annotated[float, ABOVE_0],
    ) -> "IdleSignal":
        """Look at any metric that has the one dimension `InstanceId`.

        Args:
            namespace: Its namespace, such as `CWAgent`.
            name: Its name.
            statistic: What is asked of each period of five minutes: `Average`, `Maximum`, `Minimum`, `SampleCount`
                or `Sum`.
            below: Idle is a node with less than that in each period.

        Raises:
            ValueError: A text is empty, the statistic is another, or the threshold is not a number above 0.
        """
        return IdleSignal(name="metric", settings=(_metric(namespace, name, statistic, below),))


def _metric(namespace: str, name: str, statistic: str, below: float) -> Signal:
    return Signal(kind=SignalKind.METRIC, below=below, namespace=namespace, metric=name, statistic=statistic)
