"""What else must say that a node is idle, and how the function's settings name it."""

from typing import Any

import pytest
from aws_cdk import CfnParameter

from cdk_training_cluster import IdleSignal
from cluster_contract.idle import Signal
from synthesis import new_stack


@pytest.mark.parametrize(
    ("signal", "rows"),
    [
        (IdleSignal.host(), [("cpu", 0.5), ("network", 131_072)]),
        (IdleSignal.host(below_vcpus=2, below_mib_per_second=4), [("cpu", 2), ("network", 4_194_304)]),
        (IdleSignal.network(), [("network", 1_048_576)]),
        (IdleSignal.network(0.5), [("network", 524_288)]),
        (IdleSignal.network(below_mib_per_second=0.1), [("network", 104857.6)]),
        (
            IdleSignal.efa(),
            [
                ("metric", "efa_rx_bytes", "Sum", 314_572_800),
                ("metric", "efa_tx_bytes", "Sum", 314_572_800),
            ],
        ),
        (IdleSignal.gpu_memory(), [("gpu_memory", 2048)]),
        (IdleSignal.gpu_memory(below_mib=512.5), [("gpu_memory", 512.5)]),
        (IdleSignal.heartbeat(), [("heartbeat",)]),
        (IdleSignal.session(), [("session",)]),
        (
            IdleSignal.metric("CWAgent", "mem_used_percent", "Maximum", 20.0),
            [("metric", "CWAgent", "mem_used_percent", "Maximum", 20)],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, IdleSignal) else "",
)
def test_a_signal_is_a_row_for_each_series(signal: IdleSignal, rows: list[tuple[str | float, ...]]) -> None:
    assert [row(one) for one in signal.settings] == rows


def row(signal: Signal) -> tuple[str | float, ...]:
    said = (signal.kind, signal.namespace, signal.metric, signal.statistic, signal.below)
    return tuple(each for each in said if each)


def make(call: str, *arguments: Any) -> IdleSignal:
    made: IdleSignal = getattr(IdleSignal, call)(*arguments)
    return made


@pytest.mark.parametrize(
    ("call", "arguments", "message"),
    [
        ("host", (0,), "below_vcpus must be above 0, got 0"),
        ("host", (1, 0), "below_mib_per_second must be above 0 and at most 1e+99, got 0"),
        ("network", (0,), "below_mib_per_second must be above 0 and at most 1e+99, got 0"),
        ("efa", (1e100,), "below_mib_per_second must be above 0 and at most 1e+99, got 1e+100"),
        ("gpu_memory", (float("inf"),), "below_mib must be a number above 0, got inf"),
        (
            "metric",
            ("", 5, "p99", 0),
            "namespace must have 1 to 255 ASCII characters, and no colon first, got '': leave it out, or give one\n"
            "name must be text, such as 'mem_used_percent', got 5\n"
            "statistic must be Average, Maximum, Minimum, SampleCount or Sum, got 'p99'\n"
            "below must be above 0, got 0",
        ),
    ],
)
def test_a_threshold_or_metric_that_nodes_cannot_report_is_refused(
    call: str, arguments: tuple[Any, ...], message: str
) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        make(call, *arguments)
    assert str(refused.value) == message


def test_what_is_known_at_deployment_only_is_not_checked_where_nothing_is_made_of_it() -> None:
    stack = new_stack()
    number = CfnParameter(stack, "Number", type="Number").value_as_number
    text = CfnParameter(stack, "Text").value_as_string
    assert make("gpu_memory", number).settings[0].below == number
    assert row(make("metric", text, text, text, number).settings[0]) == ("metric", text, text, text, number)
    for call in ("network", "efa"):
        with pytest.raises(ValueError, match=r"^below_mib_per_second must be known when the template is made, got "):
            make(call, number)
