"""What a status says of broken nodes: from what the health function answers."""

from datetime import timedelta

from cdk_training_cluster_cli.observe.status.health import BrokenNodes
from cdk_training_cluster_cli.observe.status.part import Moment
from cluster_contract.health_settings import HealthFunctionSettings, HealthPolicySettings
from cluster_health.outcomes import Finding, Outcome
from cluster_health.reports import summarize
from stubbed_cluster import NOW

_BROKEN = Finding(
    node_group="workers", instance_id="i-1", outcome=Outcome.CORDON, reason="has XID 79", key="", undo="aws ec2 ..."
)
_WAITING = Finding(node_group="workers", instance_id="i-2", outcome=Outcome.BUDGET, reason="is left alone", key="")


def _said(*findings: Finding, act: bool) -> tuple[list[object], dict[str, str]]:
    policy = HealthPolicySettings(act=act, window=timedelta(hours=12))
    answer = summarize(HealthFunctionSettings(cluster="pod", policy=policy), findings, {"workers": 2})
    part = BrokenNodes()
    return list(part.lines(answer, Moment(now=NOW, notes={}))), dict(part.notes(answer, NOW))


def test_it_says_what_is_done_about_each_node_and_how_many_repairs_are_left() -> None:
    assert _said(_BROKEN, _WAITING, act=True) == (
        [
            "workers, i-1: has XID 79",
            "aws ec2 ...",
            "workers, i-2: is left alone",
            "Repairs left in the window of 12 hours: workers 2.",
        ],
        {"i-1": "under repair", "i-2": "broken"},
    )


def test_it_says_that_the_function_only_reports() -> None:
    assert _said(act=False) == (["No node reports a fault.", "The health function only reports."], {})
