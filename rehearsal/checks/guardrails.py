"""Guardrails: each one that the library has, with its function, its schedule and its alarms."""

from collections.abc import Iterator, Mapping
from typing import Any

from cdk_training_cluster.guardrails import GUARDRAILS
from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.templates import Resource, of_type

SPECS = {guardrail.spec.package: guardrail.spec for guardrail in GUARDRAILS}

WITH_A_STORY = frozenset(
    {
        *("cluster_power", "cluster_idle", "cluster_hydration", "cluster_checkpoints", "cluster_spend"),
        *("cluster_health", "billing_alarms"),
    }
)
"""The packages whose functions run in a part of the rehearsal that is made for them."""

WITHOUT_A_STORY = SPECS.keys() - WITH_A_STORY
"""Those whose functions run once."""


def _functions(deployment: Deployment) -> Iterator[tuple[str, Resource]]:
    """Yield the functions of those guardrails that the cluster has, by package."""
    for function in of_type(deployment.resources, "AWS::Lambda::Function"):
        package = function.properties["Handler"].partition(".")[0]
        if package in SPECS:
            yield package, function


def _schedules(deployment: Deployment, function: Resource) -> list[Resource]:
    schedules = of_type(deployment.resources, "AWS::Scheduler::Schedule")
    return [one for one in schedules if function.id in str(one.properties["Target"]["Arn"])]


def _said(deployment: Deployment) -> Facts:
    return {
        package: {
            "timeout_seconds": function.properties["Timeout"],
            "schedules": [
                (one.properties["ScheduleExpression"], one.properties.get("State", "ENABLED"))
                for one in _schedules(deployment, function)
            ],
            "metrics_with_an_alarm_that_notifies": sorted(_metrics(package)),
        }
        for package, function in _functions(deployment)
    }


def _metrics(package: str) -> set[str]:
    spec = SPECS[package]
    return {str(spec.silence.metric), *(str(watch.metric) for watch in spec.watches)}


def _found(deployment: Deployment) -> Facts:
    client = deployment.client
    ids = {one.id for one in of_type(deployment.resources, "AWS::CloudWatch::Alarm")}
    pages = client("cloudwatch").get_paginator("describe_alarms").paginate()
    alarms = [alarm for alarm in pages.search("MetricAlarms[]") if alarm["AlarmName"] in ids]
    return {package: _of(deployment, package, function, alarms) for package, function in _functions(deployment)}


def _of(deployment: Deployment, package: str, function: Resource, alarms: list[Mapping[str, Any]]) -> dict[str, Any]:
    client = deployment.client
    schedules = [client("scheduler").get_schedule(Name=one.id) for one in _schedules(deployment, function)]
    notifying = {alarm.get("MetricName") for alarm in alarms if alarm["AlarmActions"]}
    return {
        "timeout_seconds": client("lambda").get_function_configuration(FunctionName=function.id)["Timeout"],
        "schedules": [(one["ScheduleExpression"], one["State"]) for one in schedules],
        "metrics_with_an_alarm_that_notifies": sorted(_metrics(package) & notifying),
    }


GUARDRAIL_FUNCTIONS = Check("guardrail", _said, _found)
