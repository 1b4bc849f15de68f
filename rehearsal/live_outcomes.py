"""What AWS made of each stack of `make live`, beside what the local AWS made of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from botocore.exceptions import ClientError

from rehearsal.cdk_output import plain
from rehearsal.live_facts import Facts, fact_differences
from rehearsal.readback import Client

# A consequence of another failure, and never the reason.
_CANCELLED = "cancelled"


class Verdict(StrEnum):
    """What is settled of a stack."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    DIFFERS = "differs"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """What became of one stack in one account.

    Attributes:
        refusals: Why it could not be deployed, a sentence each. Default: - it could.
        facts: What the services say of its resources.
        answers: What was found out beside, a sentence each. Default: - nothing.
    """

    refusals: Sequence[str] = ()
    facts: Facts = field(default_factory=dict)
    answers: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What is settled of one stack.

    Attributes:
        asks: The question.
        verdict: The answer.
        sentences: What AWS says, or says otherwise than the local AWS.
        expected: Whether the local AWS says so too.
    """

    asks: str
    verdict: Verdict
    sentences: Sequence[str] = ()
    expected: bool = True

    def to_json(self) -> Mapping[str, object]:
        """Return it for a file."""
        return {
            "asks": self.asks,
            "verdict": self.verdict.value,
            "sentences": list(self.sentences),
            "expected": self.expected,
        }


def judge(asks: str, local: Deployed, found: Deployed | None) -> Outcome:
    """Compare what became of a stack on AWS with what became of it on the local AWS.

    Args:
        asks: The question.
        local: What the local AWS made of it.
        found: What AWS made of it. None: it was not asked.
    """
    if found is None:
        return Outcome(asks=asks, verdict=Verdict.NOT_ASKED, expected=False)
    if found.refusals:
        expected = bool(local.refusals)
        return Outcome(asks=asks, verdict=Verdict.REFUSED, sentences=found.refusals, expected=expected)
    differences = [
        *(f"the local AWS refuses it: {sentence}" for sentence in local.refusals),
        *([] if local.refusals else fact_differences(local.facts, found.facts)),
    ]
    if not local.refusals and local.answers != found.answers:
        differences += [f"on the local AWS {sentence}" for sentence in local.answers]
    verdict = Verdict.DIFFERS if differences else Verdict.ACCEPTED
    sentences = [*found.answers, *differences]
    return Outcome(asks=asks, verdict=verdict, sentences=sentences, expected=not differences)


def refusals(client: Client, stack: str, otherwise: str) -> list[str]:
    """Return why resources of a stack failed, as CloudFormation says it.

    Args:
        client: Makes clients.
        stack: The stack's name.
        otherwise: What is returned where no resource failed.
    """
    try:
        return list(dict.fromkeys(_failures(client, stack))) or [otherwise]
    except ClientError:  # refused before there was a stack
        return [otherwise]


def _failures(client: Client, stack: str) -> Iterator[str]:
    pages = client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
    for event in pages.search("StackEvents[]"):
        reason = " ".join(str(event.get("ResourceStatusReason", "")).split())
        is_stack = event["ResourceType"] == "AWS::CloudFormation::Stack"
        if event["ResourceStatus"].endswith("_FAILED") and not is_stack and _CANCELLED not in reason:
            yield f"{event['LogicalResourceId']} ({event['ResourceType']}): {plain(reason)}"
