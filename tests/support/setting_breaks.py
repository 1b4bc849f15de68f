"""What makes a legal cluster illegal by one wrong setting, of a node group or of the cluster: a strategy for each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aws_cdk import Stack
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cdk_training_cluster import IdlePolicy, TrainingCluster
from cluster_plans import ClusterPlan, Settings, node_group, reservation_id
from cluster_strategies import CLASSES, Broken, broken, legal_clusters
from synthesis import ZONE


def _set(
    setting: str, *values: Any, says: str | None = None, call: str | Sequence[str] = ()
) -> SearchStrategy[Broken]:
    return broken(
        call or sorted(CLASSES),
        says or f"{setting}.* must ",
        lambda draw, _: {setting: draw(st.sampled_from(values))},
    )


def _buy(call: str | Sequence[str], setting: str, *values: Any) -> SearchStrategy[Broken]:
    return broken(
        call,
        f"{setting} must ",
        lambda draw, group: {"buy": {**group["buy"], setting: draw(st.sampled_from(values))}},
    )


_NO_COUNTS = (0, -1, 2.5, float("nan"), "8", True, None)

OF_ONE_SETTING: Mapping[str, SearchStrategy[Broken]] = {
    "count": _set("count", *_NO_COUNTS),
    "instance_types": _set("instance_types", [], "p5.48xlarge", None, [5]),
    "an unknown type": _set("instance_types", ["p55.48xlarge"], says="unknown instance type 'p55.48xlarge'"),
    "placement": _set("placement", "cluster", True, 0),
    "efa": _set("efa", "yes", 0, 1),
    "interface_layout": _set("interface_layout", None, "ip-optimised"),
    "idle_policy": _set("idle_policy", "off", 60, IdlePolicy),
    "idle_policy of the cluster": _set("idle_policy", IdlePolicy(max_stops=5), IdlePolicy(max_unknown_share=0.5)),
    "warm_pool": _set("warm_pool", 1, "2"),
    "root_volume_gib": _set("root_volume_gib", 0, -5, 1.5, "200"),
    "environment": _set("environment", {"A": 1}, {"A": None}, {5: "1"}, None, ["A=1"], "A=1"),
    "machine_image": _set("machine_image", "ami-0a1b2c3d", 5, {"us-east-1": "ami-0a1b2c3d"}),
    "root_device_name": _set("root_device_name", 5, ["/dev/sda1"]),
    "scripts_before": _set("scripts_before", ["no-such-file.sh"], "no-such-file.sh", None, [5]),
    "scripts_after": _set("scripts_after", ["no-such-file.sh"], "no-such-file.sh", None, [5]),
    "no end": broken("reservation", "end must .*UNTIL_CANCELLED", lambda _, __: {"buy": {}}),
    "end": _buy("reservation", "end", datetime(2026, 12, 24), "2026-12-24", None),  # noqa: DTZ001  # what is wrong
    "on_idle": _buy("reservation", "on_idle", "keep", None),
    "instance_platform": _buy(("reservation", "from_reservation"), "instance_platform", "Windows", "linux"),
    "capacity_reservation_id": _buy(
        ("from_reservation", "capacity_block"), "capacity_reservation_id", "", "cr-1", None
    ),
    "placement_group": _buy("from_reservation", "placement_group", "", 5),
    "availability_zone": _buy(("from_reservation", "capacity_block"), "availability_zone", "", 5),
    "instance_count": _buy(("from_reservation", "capacity_block"), "instance_count", 0, -1, 1.5, "8", float("nan")),
    "max_price": _buy(("spot", "spot_fleet"), "max_price", 0, -1.5, float("nan"), float("inf"), "12", True),
    "capacity_rebalancing": _buy("spot", "capacity_rebalancing", "yes", None),
    "reservations": _buy("prioritized", "reservations", ["cr-1"], "cr-0a1b2c3d", None),
    "capacity_blocks": _buy("prioritized", "capacity_blocks", [5], reservation_id(0xBAD)),
    "on_demand": _buy("prioritized", "on_demand", "yes", None),
}
"""Ways to break one setting by itself."""

_NEW: Settings = {"name": "new", "instance_types": ["g5.xlarge"], "count": 1, "call": "on_demand"}


@dataclass(frozen=True, kw_only=True)
class _Misgiven(ClusterPlan):
    """A legal cluster, but for what it is given as.

    Attributes:
        changes: What is given in the place of something right.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)

    def make(self, stack: Stack, cluster_name: str = "pod") -> TrainingCluster:
        """Make the cluster.

        Raises:
            ValueError: It is not legal.
        """
        right: dict[str, Any] = {
            "availability_zone": ZONE,
            "node_groups": [node_group(settings) for settings in self.groups],
            "cluster_name": cluster_name,
            "instance_type_facts": self.facts,
        }
        return TrainingCluster(stack, "Cluster", **{**right, **self.changes})


def _given(setting: str, *values: Any, **more: Any) -> SearchStrategy[Broken]:
    return st.builds(
        lambda plan, value: Broken(
            plan=_Misgiven(groups=plan.groups, facts=plan.facts, changes={setting: value, **more}),
            says=f"^{setting} must be ",
            of=(),
        ),
        legal_clusters(most=1),
        st.sampled_from(values),
    )


OF_THE_CLUSTER: Mapping[str, SearchStrategy[Broken]] = {
    "no node group": st.builds(
        lambda plan: Broken(
            plan=ClusterPlan(**{**vars(plan), "groups": ()}), says="node_groups must hold at least one", of=()
        ),
        legal_clusters(most=1),
    ),
    "node groups that are no list": _given("node_groups", node_group(_NEW), None, "new", 5, {"new": _NEW}),
    "node groups that are none": _given("node_groups", [_NEW], ["new"], [node_group(_NEW), None]),
    "a zone that is no text": _given("availability_zone", 5, ["us-east-1b"]),
    "a network that is none": _given("network", "vpc-0a1b2c3d", 5, availability_zone=None),
    "a file system that is none": _given("file_system", "fs-0a1b2c3d", 5),
    "data sets that are none": _given("datasets", "tokens", 5, ["tokens"], None),
    "facts that are none": _given("instance_type_facts", "g9.xlarge", [{"name": "g9.xlarge"}], None),
    "a cluster's name that is none": _given("cluster_name", 5, ["pod"], "a" * 129),
    "a topic that is none": _given("alert_topic", "arn:aws:sns:us-east-1:111122223333:alerts", 5),
    "an idle policy that is none": _given("idle_policy", "off", 60, IdlePolicy),
    "a budget that is none": _given("budget", 20_000, "20000", {"monthly_usd": 20_000}),
    "a layer that is none": _given("powertools_layer", "arn:aws:lambda:us-east-1:111122223333:layer:tools:1", 5),
    "a key that is none": _given("encryption_key", "arn:aws:kms:us-east-1:111122223333:key/mrk-1", 5),
    "two of one name": st.builds(
        lambda plan: Broken(
            plan=ClusterPlan(**{**vars(plan), "groups": (*plan.groups, {**_NEW, "name": plan.groups[0]["name"]})}),
            says="node_groups must have different names",
            of=(),
        ),
        legal_clusters(most=2),
    ),
}
"""Ways to break a cluster whose node groups are right."""
