"""An account in memory for the billing alarms: alarms and topics of the billing region, and the messages."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from aws_lambda_powertools import Logger

from billing_alarms.billing import Billing, Clients, Request
from billing_alarms.watched_budget import WatchedBudget
from cluster_common.errors import PartialFailureError
from fake_service import ACCOUNT, FakePaginator, FakeService, refusal
from policy_evaluator import Call
from power_scene import FakeSns

HOME = "eu-west-1"
BILLING = "us-east-1"
PREFIX = "base-pod-cluster/eu-west-1/billing-1a2b3c4d/"
TOPIC = f"arn:aws:sns:{BILLING}:{ACCOUNT}:base-pod-cluster-eu-west-1-billing-1a2b3c4d"
ALERTS = f"arn:aws:sns:{HOME}:{ACCOUNT}:alerts"
START = datetime(2026, 11, 2, 8, 2, tzinfo=UTC)
MAIL = "ml@example.com"
OTHERS: dict[str, Any] = {"AlarmName": "of-another-team", "Threshold": 5.0}


class FakeBillingAlarms(FakeService):
    """The client of CloudWatch in the billing region.

    Attributes:
        alarms: Every alarm of the account, as DescribeAlarms answers, by name.
        charges: What AWS reports in USD, by linked account and service; None and None are the whole account.
        rung: The alarms that notified, in order.
    """

    def __init__(self, clock: Callable[[], datetime]) -> None:
        super().__init__("cloudwatch")
        self._clock = clock
        self.alarms: dict[str, dict[str, Any]] = {}
        self.charges: dict[tuple[str | None, str | None], float] = {(None, None): 0.0}
        self.rung: list[str] = []

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of DescribeAlarms."""
        return FakePaginator({"describe_alarms": self._describe}[operation])

    def put_metric_alarm(self, **parameters: Any) -> None:
        """Answer PutMetricAlarm: what was there before is overwritten, but for its state."""
        name = parameters["AlarmName"]
        self.record("PutMetricAlarm", parameters, names=[name], arn=_alarm(name))
        before = self.alarms.get(name, {})
        new = {"StateValue": "INSUFFICIENT_DATA", "StateTransitionedTimestamp": self._clock()}
        kept = {key: before.get(key, value) for key, value in new.items()}
        self.alarms[name] = kept | {"AlarmConfigurationUpdatedTimestamp": self._clock()} | parameters

    def set_alarm_state(self, **parameters: Any) -> None:
        """Answer SetAlarmState: the state holds until the next evaluation."""
        name = parameters["AlarmName"]
        self.record("SetAlarmState", parameters, names=[name], arn=_alarm(name))
        self._move(self.alarms[name], parameters["StateValue"])

    def evaluate(self) -> None:
        """Let every alarm on charges have the state of what is reported, and notify when it goes off."""
        for alarm in self.alarms.values():
            if "Dimensions" in alarm:
                of = {each["Name"]: each["Value"] for each in alarm["Dimensions"]}
                usd = self.charges.get((of.get("LinkedAccount"), of.get("ServiceName")))
                reached = usd is not None and usd >= alarm["Threshold"]
                self._move(alarm, "INSUFFICIENT_DATA" if usd is None else "ALARM" if reached else "OK")

    def _move(self, alarm: dict[str, Any], state: str) -> None:
        if alarm["StateValue"] != state:
            alarm |= {"StateValue": state, "StateTransitionedTimestamp": self._clock()}
            self.rung += [alarm["AlarmName"]] if state == "ALARM" and alarm["ActionsEnabled"] else []

    def delete_alarms(self, **parameters: Any) -> None:
        """Answer DeleteAlarms."""
        names = parameters["AlarmNames"]
        assert len(names) <= 100
        self.record("DeleteAlarms", parameters, names=names, arn=_alarm(names[0]))
        self.calls += [Call(action="cloudwatch:DeleteAlarms", resource=_alarm(name)) for name in names[1:]]
        if not set(names) <= set(self.alarms):
            raise refusal("DeleteAlarms", "ResourceNotFound", "")
        for name in names:
            del self.alarms[name]

    def _describe(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        self.evaluate()
        size = parameters.pop("PaginationConfig")["PageSize"]
        found = [each for name, each in sorted(self.alarms.items()) if name.startswith(parameters["AlarmNamePrefix"])]
        for at in range(0, max(len(found), 1), size):
            self.record("DescribeAlarms", parameters | {"MaxRecords": size}, context=IN_BILLING_REGION)
            yield {"MetricAlarms": found[at : at + size]}


class FakeBillingTopics(FakeService):
    """The client of SNS in the billing region.

    Attributes:
        topics: Tags, policy and subscriptions (ARN by address) of each topic, by its ARN.
        asked: The addresses that were asked to confirm, in order.
    """

    def __init__(self) -> None:
        super().__init__("sns")
        self.topics: dict[str, dict[str, Any]] = {}
        self.asked: list[str] = []

    def create_topic(self, **parameters: Any) -> None:
        """Answer CreateTopic, which takes a topic that is there for its own if the tags are the same."""
        arn = f"{TOPIC.rpartition(':')[0]}:{parameters['Name']}"
        tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
        self._record("CreateTopic", parameters, arn)
        self._record("TagResource", {"ResourceArn": arn, "Tags": parameters["Tags"]}, arn, asked=False)
        if self.topics.setdefault(arn, {"tags": tags, "subscriptions": {}})["tags"] != tags:
            raise refusal("CreateTopic", "InvalidParameter", "Topic already exists with different tags")
        self.topics[arn]["policy"] = parameters["Attributes"]["Policy"]

    def list_tags_for_resource(self, **parameters: Any) -> dict[str, Any]:
        """Answer ListTagsForResource."""
        topic = self._topic("ListTagsForResource", parameters, "ResourceNotFound")
        return {"Tags": [{"Key": key, "Value": value} for key, value in topic["tags"].items()]}

    def get_topic_attributes(self, **parameters: Any) -> dict[str, Any]:
        """Answer GetTopicAttributes."""
        return {"Attributes": {"Policy": self._topic("GetTopicAttributes", parameters)["policy"]}}

    def set_topic_attributes(self, **parameters: Any) -> None:
        """Answer SetTopicAttributes."""
        assert parameters["AttributeName"] == "Policy"
        self._topic("SetTopicAttributes", parameters)["policy"] = parameters["AttributeValue"]

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return the paginator of ListSubscriptionsByTopic."""
        assert operation == "list_subscriptions_by_topic"
        return FakePaginator(self._subscriptions)

    def subscribe(self, **parameters: Any) -> None:
        """Answer Subscribe: the subscription is pending until its address confirms it."""
        context: dict[str, str | list[str]] = {"sns:Protocol": parameters["Protocol"]}
        topic = self._topic("Subscribe", parameters, names=[parameters["Endpoint"]], context=context)
        topic["subscriptions"].setdefault(parameters["Endpoint"], "PendingConfirmation")
        self.asked.append(parameters["Endpoint"])

    def unsubscribe(self, **parameters: Any) -> None:
        """Answer Unsubscribe."""
        arn = parameters["SubscriptionArn"]
        # IAM sees the topic, or an asterisk; never the subscription.
        for seen in (arn.rpartition(":")[0], "*"):
            self._record("Unsubscribe", parameters, seen, asked=seen == "*", context=IN_BILLING_REGION)
        for topic in self.topics.values():
            topic["subscriptions"] = {who: one for who, one in topic["subscriptions"].items() if one != arn}

    def tag_resource(self, **parameters: Any) -> None:
        """Answer TagResource."""
        tags = {tag["Key"]: tag["Value"] for tag in parameters["Tags"]}
        self._topic("TagResource", parameters)["tags"].update(tags)

    def untag_resource(self, **parameters: Any) -> None:
        """Answer UntagResource."""
        tags = self._topic("UntagResource", parameters)["tags"]
        for key in parameters["TagKeys"]:
            del tags[key]

    def publish(self, **parameters: Any) -> None:
        """Answer Publish."""
        self._topic("Publish", parameters)["published"] = parameters["Message"]

    def delete_topic(self, **parameters: Any) -> None:
        """Answer DeleteTopic."""
        self._topic("DeleteTopic", parameters)
        del self.topics[parameters["TopicArn"]]

    def confirm(self, address: str, topic: str = TOPIC) -> None:
        """Open the link in the request to confirm."""
        self.topics[topic]["subscriptions"][address] = f"{topic}:{address}"

    def expire(self) -> None:
        """Let 48 hours pass, after which SNS deletes subscriptions that were not confirmed."""
        for topic in self.topics.values():
            kept = {who: arn for who, arn in topic["subscriptions"].items() if arn != "PendingConfirmation"}
            topic["subscriptions"] = kept

    def _subscriptions(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        topic = self._topic("ListSubscriptionsByTopic", parameters)
        yield {
            "Subscriptions": [
                {"Protocol": "email", "Endpoint": address, "SubscriptionArn": arn}
                for address, arn in topic["subscriptions"].items()
            ]
        }

    def _topic(
        self, operation: str, parameters: dict[str, Any], absent: str = "NotFound", **more: Any
    ) -> dict[str, Any]:
        arn = parameters.get("TopicArn") or parameters["ResourceArn"]
        self._record(operation, parameters, arn, **more)
        if arn not in self.topics:
            raise refusal(operation, absent, "Topic does not exist")
        found: dict[str, Any] = self.topics[arn]
        return found

    def _record(
        self, operation: str, parameters: dict[str, Any], arn: str, *, asked: bool = True, **more: Any
    ) -> None:
        """Record a call; one that was not asked for is what IAM checks beside another."""
        self.record(operation, parameters, arn=arn, **{"context": {}, **more})
        if not asked:
            self.requests.pop()


class FakeFunctions(FakeService):
    """The client of Lambda in the function's region.

    Attributes:
        reserved: The function's reserved concurrency.
    """

    def __init__(self) -> None:
        super().__init__("lambda")
        self.reserved = 1

    def put_function_concurrency(self, **parameters: Any) -> None:
        """Answer PutFunctionConcurrency."""
        arn = f"arn:aws:lambda:{HOME}:{ACCOUNT}:function:{parameters['FunctionName']}"
        self.record("PutFunctionConcurrency", parameters, arn=arn)
        self.reserved = parameters["ReservedConcurrentExecutions"]


IN_BILLING_REGION: dict[str, str | list[str]] = {"aws:RequestedRegion": BILLING}


class BillingScene:
    """An account, and the function that keeps the alarms of one budget in it."""

    def __init__(self, **settings: Any) -> None:
        """Begin without alarms; `settings` are more of the function's."""
        self.now = START
        self.cloudwatch, self.topics, self.home = FakeBillingAlarms(lambda: self.now), FakeBillingTopics(), FakeSns()
        self.functions = FakeFunctions()
        self.settings = WatchedBudget(
            **{
                "cluster": "base-pod",
                "prefix": PREFIX,
                "function": "billing",
                "account": ACCOUNT,
                "monthly_usd": 20_000.0,
                "thresholds": (50.0, 80.0, 100.0),
                "emails": (MAIL,),
                "alert_topic_arn": ALERTS,
                **settings,
            }
        )

    @property
    def billing(self) -> Billing:
        """The function, at the time of the scene."""
        clients = cast("Any", Clients)(
            cloudwatch=lambda: self.cloudwatch,
            sns=lambda: self.topics,
            home_sns=lambda: self.home,
            functions=lambda: self.functions,
        )
        return Billing(self.settings, clients, Logger(service="test"), self.now)

    def run(self, request: Request = Request.TICK) -> dict[str, Any]:
        """Invoke the function and return what it says; five minutes pass."""
        said: Any = self.billing.run(request)
        self.now += timedelta(minutes=5)
        assert json.loads(json.dumps(said)) == said
        return cast("dict[str, Any]", said)

    def remove(self) -> str:
        """Let CloudFormation delete the stack, and the topic get a message about what is left."""
        try:
            self.billing.remove()
        except PartialFailureError as left:
            self.billing.tell_left_behind([str(left)])
            return str(left)
        return ""

    def pass_days(self, days: float) -> None:
        """Let time pass without a run."""
        self.now += timedelta(days=days)

    @property
    def calls(self) -> list[Call]:
        """Every call to AWS so far, as IAM sees it."""
        return [*self.cloudwatch.calls, *self.topics.calls, *self.home.calls, *self.functions.calls]

    @property
    def requests(self) -> list[str]:
        """Every request so far."""
        return [operation for service in (self.cloudwatch, self.topics) for operation, _ in service.requests]

    @property
    def own_alarms(self) -> set[str]:
        """The names of this budget's alarms, without their prefix."""
        return {name.removeprefix(PREFIX) for name in self.cloudwatch.alarms if name.startswith(PREFIX)}

    def forget(self) -> None:
        """Forget the requests so far."""
        self.cloudwatch.requests.clear()
        self.topics.requests.clear()


def _alarm(name: str) -> str:
    return f"arn:aws:cloudwatch:{BILLING}:{ACCOUNT}:alarm:{name}"


def settled(**settings: Any) -> BillingScene:
    """Return an account in which the first run is over and every address is confirmed."""
    scene = BillingScene(**settings)
    scene.cloudwatch.alarms[OTHERS["AlarmName"]] = dict(OTHERS)
    scene.run()
    for address in scene.settings.emails:
        scene.topics.confirm(address)
    scene.run()
    scene.forget()
    return scene
