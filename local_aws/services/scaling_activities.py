"""Auto Scaling's activities: what a group launched and terminated, and why a launch failed.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-verify-scaling-activity.html
"""

from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import uuid4

from moto.core.responses import ActionResult
from moto.core.utils import utcnow

from local_aws.services.answers import page


@dataclass
class ScalingActivity:
    """One entry of DescribeScalingActivities."""

    group: str
    description: str
    cause: str
    status: str
    message: str | None
    started: datetime = field(default_factory=utcnow)
    id: str = field(default_factory=lambda: str(uuid4()))

    def described(self) -> dict[str, Any]:
        """Return the activity as DescribeScalingActivities shows it."""
        return {
            "ActivityId": self.id,
            "AutoScalingGroupName": self.group,
            "Description": self.description,
            "Cause": self.cause,
            "StartTime": self.started,
            "EndTime": self.started,
            "StatusCode": self.status,
            "StatusMessage": self.message,
            "Progress": 100,
            "Details": "{}",
        }


# By account and region, oldest first; they outlive their group, as the service keeps them.
_activities: dict[tuple[str, str], list[ScalingActivity]] = defaultdict(list)


def remember(group: Any, description: str, cause: str, status: str, message: str | None = None) -> None:
    """Note an activity of a group that ended in `status`, with the service's message if it failed."""
    activity = ScalingActivity(group.name, description, cause, status, message)
    _activities[group.account_id, group.region].append(activity)


def describe_scaling_activities(response: Any) -> ActionResult:
    """Answer DescribeScalingActivities, newest first."""
    wanted = response._get_param("ActivityIds", [])
    name = response._get_param("AutoScalingGroupName")
    shown = [
        activity.described()
        for activity in reversed(_activities[response.current_account, response.region])
        if (not wanted or activity.id in wanted) and (name is None or activity.group == name)
    ]
    some, token = page(shown, response._get_param("NextToken"), response._get_int_param("MaxRecords", 100))
    return ActionResult({"Activities": some, "NextToken": token})
