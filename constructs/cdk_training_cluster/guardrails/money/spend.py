"""The construct that counts a cluster's dollars: its function, its tick, its alarms and its permissions."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.capacity import MAX_HOURLY_USD
from cdk_training_cluster.core.dashboards.rows import DashboardRow, Panel, PanelKind, Threshold, Unit
from cdk_training_cluster.functions import (
    ClusterPermissions,
    Guardrail,
    GuardrailArguments,
    GuardrailSpec,
    OwnerPermissions,
    Silence,
    Watch,
)
from cdk_training_cluster.guardrails.money.budget import Budget
from cdk_training_cluster.guardrails.money.fixed_parts import FixedParts, as_floats
from cdk_training_cluster.guardrails.money.spend_group import SpendGroup
from cdk_training_cluster.guardrails.power import ClusterPower
from cdk_training_cluster.prices.watching import ScheduledFunction, node_units
from cdk_training_cluster.validation.bounds import Number
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.metrics import NODE_METRICS
from cluster_contract.price_list import REGION as PRICE_LIST_REGION
from cluster_contract.spend import KIND_DIMENSION, OnExceed, SpendFunctionSettings, SpendKind, SpendMetric, usd_text
from cluster_contract.state import StatePart
from cluster_contract.tags import CLUSTER_TAG

_PRICE = Number(above=0, maximum=MAX_HOURLY_USD)
_TICK = SpendFunctionSettings.tick

# From this share of a budget on, in percent, the spend function acts.
_WHOLE = 100

# On errors, on events that failed, and on silence.
_ALARMS_OF_EVERY_GUARDRAIL = 3

_REMEDY = (
    'Invoke $function with {"action": "status"}, which lists what each part costs, and stop what is not needed with '
    "`training-cluster stop $name --node-group GROUP`"
)

_WATCHES = (
    Watch(
        id="UnknownPrices",
        metric=SpendMetric.UNKNOWN_PRICES,
        trouble="for 15 minutes the spend function has not known the price of something that is billed, so the "
        "cluster costs more than the function counts",
        remedy="Run `training-cluster status $name`, which names it, and state its price "
        "in the budget's prices; the function then also counts what was billed before",
    ),
)


class ClusterSpend(Guardrail):
    """Make the function that counts a cluster's dollars as they are spent, and acts where they exceed its budget.

    Every five minutes it prices what EC2 says: running instances (On-Demand, or the Spot price of their type and zone
    now), reservations and Capacity Blocks, which are billed whether or not anything runs in them, and root volumes;
    and beside them what the deployment made: file system, NAT gateway, metrics, alarms and functions. A network or a
    file system that clusters of an app share is counted by the first of them that has a budget. It publishes
    dollars an hour, of this month of UTC, and at its end if the cluster goes on as it is: for the cluster, each node
    group and each kind of charge. The month is kept in `state`. A run that is missed, fails or ends halfway loses
    nothing: the next one counts from where the last one ended, by the times at which instances were launched and have
    ended. Only where no run succeeded for more than ten minutes may instances be missing that ended meanwhile and
    that EC2 no longer lists; the length of such a gap is a metric.

    A price that is not known is named, and an alarm goes into ALARM; what was billed until then is counted as soon
    as the price is known. The sums are list prices: no Savings Plan, discount, free tier, tax or transfer is in them,
    and the bill is what counts. A Capacity Block is paid for when it is bought: state its price in the budget's
    `prices`, in USD an hour of one instance, and it is spread over the block's time.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, and an
    `AWS::CloudWatch::Alarm` for each threshold and forecast threshold of the budget, for its rate, for unknown prices
    and for the function's silence.

    Attributes:
        budget: What the cluster may cost.
        month_alarms: Go into ALARM when the month's dollars reach a threshold, by the threshold in percent.
        forecast_alarms: Go into ALARM when the month is forecast to reach a threshold, likewise.
        rate_alarm: Goes into ALARM when the cluster costs more an hour than it may. None: the budget names no rate.
        unknown_prices_alarm: Goes into ALARM when something is billed whose price is not known.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html,
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-pricing-billing.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_spend",
        called="the spend function",
        purpose="Counts the dollars of the training cluster $name",
        output="SpendFunctionName",
        every=_TICK,
        timeout=timedelta(minutes=4),
        silence=Silence(
            metric=SpendMetric.SUCCESSFUL_TICKS,
            trouble="the spend function has not succeeded for 15 minutes, so the cluster may cost more than its "
            "budget without a message",
        ),
        watches=_WATCHES,
        keeps=StatePart.SPEND,
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        budget: Budget,
        node_groups: Mapping[str, SpendGroup] | None = None,
        fixed: FixedParts | None = None,
        starts: Mapping[str, datetime] | None = None,
        prices: Mapping[str, Annotated[float, _PRICE]] | None = None,
        power: ClusterPower | None = None,
        **arguments: Unpack[GuardrailArguments],
    ) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            budget: What the cluster may cost in a month and in an hour, and what happens when it costs more.
            node_groups: What is billed beside the instances of each node group, by its name. Default: - instances
                alone are counted.
            fixed: What else is billed by the hour: units an hour by their names in the library's price list, by the
                kind of charge, such as `{"file-system": {"fsx-persistent-2-250": 6.58}}`. Default: - nothing.
            starts: From when on units of `fixed` are billed, by their names. Default: - from the first run on.
            prices: What an instance costs an hour, in USD, by its type or by the id of the Capacity Block that it
                runs in, and what anything else costs by its name in `unknown_prices`, where that is known better than
                from AWS's lists. Default: - those lists.
            power: The power function that owns the sizes of these node groups, which a budget that acts needs.
                Default: - none.
            **arguments: As `GuardrailArguments` says.

        Raises:
            ValueError: A setting is of the wrong kind, `fixed` names an unknown kind of charge, the budget acts and
                there is no power function, another function counts a cluster of this name in `state`, or
                `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, **arguments)
        self.budget = budget
        groups = node_groups or {}
        self._acts = budget.on_exceed is not OnExceed.NOTIFY and bool(groups)
        if self._acts and power is None:
            raise ValueError(
                f"power is required beside a budget with on_exceed {budget.on_exceed.value!r} and node_groups: the "
                "power function stops and limits them; give cluster.power"
            )
        unknown = sorted(set(fixed or {}) - set(SpendKind))
        if unknown:
            raise ValueError(f"fixed takes the kinds {', '.join(SpendKind)}, got {', '.join(unknown)}")
        self._owners = OwnerPermissions(groups.values())
        self._reserves = any(group.reservations for group in groups.values())
        settings = SpendFunctionSettings(
            cluster=self._cluster_name,
            monthly_usd=budget.monthly_usd,
            thresholds=tuple(budget.thresholds),
            on_exceed=budget.on_exceed if self._acts else OnExceed.NOTIFY,
            warning=timedelta(minutes=budget.warning_minutes),
            groups={name: group.settings for name, group in groups.items()},
            fixed=fixed or {},
            starts=starts or {},
            node=as_floats(node_units()),
            prices=prices or {},
            topic_arn=self._alert_topic.topic_arn,
            power_function=power.function.function_name if power is not None and self._acts else "",
            state_table=self.state.table_name,
            stack_id=self._stack_id_end,
        )
        self._make(settings, self._grant)
        if power is not None and self._acts:
            power.grant_budget(self._cluster_function.role)
        effect = _effect(budget.on_exceed if self._acts else OnExceed.NOTIFY, budget.warning_minutes)
        self.month_alarms: dict[float, cloudwatch.Alarm] = {
            share: self._watch(_month_watch(budget, share, effect)) for share in budget.thresholds
        }
        self.forecast_alarms: dict[float, cloudwatch.Alarm] = {
            share: self._watch(_forecast_watch(budget, share)) for share in budget.forecast_thresholds
        }
        rate = budget.max_usd_per_hour
        self.rate_alarm: cloudwatch.Alarm | None = None if rate is None else self._watch(_rate_watch(rate))
        self.unknown_prices_alarm: cloudwatch.Alarm = self._alarms["UnknownPrices"]

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        yield from self.budget.describe_spend()

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        budget = Threshold(value=self.budget.monthly_usd, label="budget")
        rate = self.budget.max_usd_per_hour
        group = NODE_METRICS.node_group_dimension
        return DashboardRow(
            title="Money",
            panels=[
                Panel(
                    title="Spent",
                    unit=Unit.USD,
                    kind=PanelKind.NUMBER,
                    lines=[
                        self._line("an hour", SpendMetric.DOLLARS_PER_HOUR),
                        self._line("this month", SpendMetric.MONTH_TO_DATE, "Maximum"),
                        self._line("forecast for the month", SpendMetric.FORECAST),
                    ],
                ),
                Panel(
                    title="This month and its forecast, against the budget",
                    unit=Unit.USD,
                    lines=[
                        self._line("this month", SpendMetric.MONTH_TO_DATE, "Maximum"),
                        self._line("forecast", SpendMetric.FORECAST),
                    ],
                    thresholds=[budget],
                ),
                Panel(
                    title="Cost by node group",
                    unit=Unit.USD_PER_HOUR,
                    lines=[self._line_for_each(SpendMetric.DOLLARS_PER_HOUR, group)],
                    thresholds=[] if rate is None else [Threshold(value=rate, label="most an hour")],
                ),
                Panel(
                    title="Cost by kind",
                    unit=Unit.USD_PER_HOUR,
                    lines=[self._line_for_each(SpendMetric.DOLLARS_PER_HOUR, KIND_DIMENSION)],
                ),
                Panel(
                    title="Part of this month that may lack instances",
                    unit=Unit.MINUTES,
                    lines=[self._line("not seen", SpendMetric.GAP_MINUTES, "Maximum")],
                ),
            ],
        )

    def metric_dollars_per_hour(
        self, *, node_group: str | None = None, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return what the cluster costs an hour, in USD.

        Args:
            node_group: One node group's part. Default: - the whole cluster.
            statistic: Over what the function reports every 5 minutes. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(SpendMetric.DOLLARS_PER_HOUR, statistic, period, node_group)

    def metric_month_to_date_dollars(
        self, *, node_group: str | None = None, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return what the cluster has cost since the month began in UTC, in USD.

        Args:
            node_group: One node group's part. Default: - the whole cluster.
            statistic: Over what the function reports every 5 minutes. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(SpendMetric.MONTH_TO_DATE, statistic, period, node_group)

    def metric_forecast_dollars(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return what the cluster will have cost at the month's end if it goes on costing as much an hour, in USD.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(SpendMetric.FORECAST, statistic, period)

    def _grant(self, role: iam.Role) -> None:
        """Give the permissions to the function's role.

        Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
        """
        permissions = ClusterPermissions(
            role, cluster_name=self._cluster_name, tag_key=CLUSTER_TAG, own_tags=CLUSTER_TAG
        )
        permissions.read(sorted(set(self._reads())))
        # The Price List has no resources, and is not in every region.
        # https://docs.aws.amazon.com/service-authorization/latest/reference/list_pricing.html
        of_the_list = {"StringEquals": {"aws:RequestedRegion": PRICE_LIST_REGION}}
        role.add_to_policy(
            iam.PolicyStatement(actions=["pricing:GetProducts"], resources=["*"], conditions=of_the_list)
        )

    def _reads(self) -> Iterator[str]:
        yield from self._owners.reads(nodes_only=not self._acts)
        if self._reserves:
            yield "ec2:DescribeCapacityReservations"
        yield from ("ec2:DescribeInstances", "ec2:DescribeSpotPriceHistory")


def alarm_count(budget: Budget) -> int:
    """Return how many alarms `ClusterSpend` makes for a budget.

    Args:
        budget: The budget.
    """
    own = len(budget.thresholds) + len(budget.forecast_thresholds) + (budget.max_usd_per_hour is not None)
    return _ALARMS_OF_EVERY_GUARDRAIL + len(ClusterSpend.spec.watches) + own


def scheduled_function() -> ScheduledFunction:
    """Return the function of `ClusterSpend` as what runs again and again."""
    spec = ClusterSpend.spec
    return ScheduledFunction(memory_mib=spec.memory_size_mib, every_minutes=int(spec.every.total_seconds() // 60))


def _month_watch(budget: Budget, share: float, effect: str) -> Watch:
    return Watch(
        id=f"Month{_name(share)}",
        metric=SpendMetric.MONTH_TO_DATE,
        statistic="Maximum",
        periods=1,
        threshold=budget.monthly_usd * share / 100,
        trouble=f"the cluster has cost {share:g} % of its budget of {usd_text(budget.monthly_usd)} since the month "
        "began in UTC",
        remedy=f"{effect}. {_REMEDY}" if share >= _WHOLE else _REMEDY,
    )


def _effect(on_exceed: OnExceed, warning_minutes: float) -> str:
    """Say what the spend function does where a month's dollars reach the whole budget."""
    if on_exceed is OnExceed.STOP:
        return (
            "The spend function sends a warning with the command that keeps a node group, and stops the others "
            f"{warning_minutes:g} minutes later"
        )
    if on_exceed is OnExceed.NO_NEW_NODES:
        return "The spend function lets the node groups get no new nodes until a start command"
    return "The spend function stops nothing: the nodes run on and are billed"


def _forecast_watch(budget: Budget, share: float) -> Watch:
    return Watch(
        id=f"Forecast{_name(share)}",
        metric=SpendMetric.FORECAST,
        # An hour, of which some points may be missing: nodes that come for a short while are no trend.
        periods=12,
        datapoints=9,
        threshold=budget.monthly_usd * share / 100,
        trouble=f"if the cluster goes on costing as much as in the last hour, it will reach {share:g} % of its "
        f"budget of {usd_text(budget.monthly_usd)} before the month ends in UTC",
        remedy=_REMEDY,
    )


def _rate_watch(usd: float) -> Watch:
    return Watch(
        id="Rate",
        metric=SpendMetric.DOLLARS_PER_HOUR,
        threshold=usd,
        trouble=f"for 15 minutes the cluster has cost {usd_text(usd)} an hour or more",
        remedy=_REMEDY,
    )


def _name(share: float) -> str:
    return f"{share:g}".replace(".", "Point").replace("+", "").replace("-", "Minus")
