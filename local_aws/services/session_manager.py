"""Session Manager's sessions: no person opens one here, so a control request does.

https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_DescribeSessions.html
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from secrets import token_hex
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow

from local_aws.refusal import Refusal

_MOST = 200


@dataclass
class _Session:
    account: str
    region: str
    target: str
    id: str = field(default_factory=lambda: f"operator-{token_hex(9)[:17]}")
    started: datetime = field(default_factory=utcnow)
    ended: datetime | None = None

    def described(self) -> dict[str, Any]:
        """Return the session as DescribeSessions shows it."""
        return {
            "SessionId": self.id,
            "Target": self.target,
            "Status": "Terminated" if self.ended else "Connected",
            "StartDate": self.started,
            "EndDate": self.ended,
            "DocumentName": "SSM-SessionManagerRunShell",
            "Owner": f"arn:aws:iam::{self.account}:user/operator",
        }


_sessions: list[_Session] = []

_FILTERS: Mapping[str, Callable[[_Session, str], bool]] = {
    "Target": lambda session, value: session.target == value,
    "SessionId": lambda session, value: session.id == value,
    "Status": lambda session, value: session.described()["Status"] == value,
    "InvokedAfter": lambda session, value: f"{session.started:%Y-%m-%dT%H:%M:%SZ}" > value,
    "InvokedBefore": lambda session, value: f"{session.started:%Y-%m-%dT%H:%M:%SZ}" < value,
}


def describe_sessions(response: Any) -> ActionResult:
    """Carry out DescribeSessions."""
    active = response._get_param("State") == "Active"
    found = [
        session
        for session in _sessions
        if (session.account, session.region) == (response.current_account, response.region)
        and (session.ended is None) == active
    ]
    for each in response._get_param("Filters") or []:
        if each["key"] not in _FILTERS:
            raise Refusal("InvalidFilterKey", f"The specified filter key {each['key']} is not valid.")
        found = [session for session in found if _FILTERS[each["key"]](session, each["value"])]
    start = int(response._get_param("NextToken") or 0)
    end = start + int(response._get_param("MaxResults") or _MOST)
    token = str(end) if end < len(found) else None
    return ActionResult({"Sessions": [session.described() for session in found[start:end]], "NextToken": token})


def add(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Open a session on an instance."""
    session = _Session(str(request["account"]), str(request["region"]), str(request["instance_id"]))
    _sessions.append(session)
    return {"session_id": session.id}


def end_all(_: Mapping[str, Any]) -> Mapping[str, Any]:
    """End every session."""
    for session in _sessions:
        session.ended = session.ended or utcnow()
    return {}
