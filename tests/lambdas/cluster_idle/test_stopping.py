"""Batches of StopInstances, of which EC2 stops all or none."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

from cluster_common.errors import PartialFailureError
from cluster_common.failures import Failures
from cluster_idle.stopping import DENIED, MAX_AT_ONCE, MAX_DENIED, Stopper
from fake_instances import stop_refused

IDS = [f"i-{number:017x}" for number in range(1, 9)]


class Ec2:
    """EC2, as far as StopInstances goes.

    Attributes:
        batches: The ids of each request.
    """

    def __init__(self, refuse: Callable[[Sequence[str]], Exception | None] = lambda _: None) -> None:
        self._refuse = refuse
        self.batches: list[list[str]] = []
        self.requests: list[dict[str, Any]] = []
        self.stopped: list[str] = []

    def stop_instances(self, **parameters: Any) -> dict[str, Any]:
        ids = list(parameters["InstanceIds"])
        self.requests.append(parameters)
        self.batches.append(ids)
        assert len(self.batches) < 100, "it loops"
        error = self._refuse(ids)
        if error is not None:
            raise error
        self.stopped += ids
        return {}


def stopper(ec2: Ec2, failures: Failures) -> Stopper:
    return Stopper(cast("Any", ec2), failures, lambda ids: [one for one in ids if one not in ec2.stopped])


def stop(ec2: Ec2, ids: Sequence[str] = IDS, **settings: Any) -> tuple[list[str], tuple[str, ...]]:
    """Stop instances; return those that are stopped, and what failed."""
    failures = Failures(Logger(service="test"))
    stopped = stopper(ec2, failures).stop(ids, **settings)
    assert stopped == ec2.stopped
    try:
        failures.raise_all()
    except PartialFailureError as error:
        return stopped, error.failures
    return stopped, ()


def naming(code: str, message: str, *bad: str) -> Callable[[Sequence[str]], ClientError | None]:
    """Refuse a batch with the first of some ids in it, as EC2 does, and name it in the message."""

    def refuse(ids: Sequence[str]) -> ClientError | None:
        named = next((one for one in bad if one in ids), None)
        return stop_refused(code, message.format(id=named)) if named else None

    return refuse


def silent(code: str, *bad: str) -> Callable[[Sequence[str]], ClientError | None]:
    """Refuse a batch that holds any of some ids, and name none."""
    return lambda ids: stop_refused(code, "it cannot be done") if set(bad) & set(ids) else None


def test_fifty_are_stopped_at_once() -> None:
    ec2, ids = Ec2(), [f"i-{number:017x}" for number in range(120)]

    assert stop(ec2, ids) == (ids, ())
    assert [len(batch) for batch in ec2.batches] == [MAX_AT_ONCE, MAX_AT_ONCE, 20]
    assert MAX_AT_ONCE == 50


@pytest.mark.parametrize(("settings", "more"), [({}, {}), ({"hibernate": True}, {"Hibernate": True})])
def test_those_that_hibernate_are_asked_to(settings: dict[str, bool], more: dict[str, bool]) -> None:
    ec2 = Ec2()

    stop(ec2, IDS[:2], **settings)

    assert ec2.requests == [{"InstanceIds": IDS[:2], **more}]


# What EC2 says, as seen in the field.
NOT_FOUND = ("InvalidInstanceID.NotFound", "The instance ID '{id}' does not exist")
NOT_FOUND_TWO = ("InvalidInstanceID.NotFound", "The instance IDs '{id}, i-0000000000000beef' do not exist")
WRONG_STATE = ("IncorrectInstanceState", "The instance '{id}' is not in a state from which it can be stopped.")
SPOT = (
    "UnsupportedOperation",
    "You can't stop the Spot Instance '{id}' because it is associated with a one-time Spot Instance request. You can "
    "only stop Spot Instances associated with persistent Spot Instance requests.",
)
STORE = ("UnsupportedOperation", "The instance '{id}' does not have an 'ebs' root device type and cannot be stopped.")
PROTECTED = (
    "OperationNotPermitted",
    "The instance '{id}' may not be stopped. Modify its 'disableApiStop' instance attribute and try again.",
)
HIBERNATION = (
    "UnsupportedHibernationConfiguration",
    "The instance '{id}' could not be hibernated because it is not configured for hibernation.",
)


@pytest.mark.parametrize("refusal", [SPOT, STORE, PROTECTED, HIBERNATION])
def test_an_instance_that_is_named_is_dropped_and_the_others_are_stopped(refusal: tuple[str, str]) -> None:
    ec2 = Ec2(naming(*refusal, IDS[2]))

    stopped, failures = stop(ec2)

    assert stopped == [one for one in IDS if one != IDS[2]]
    assert len(ec2.batches) == 2
    code, message = refusal
    assert failures == (f"{IDS[2]}: could not be stopped ({code}: {message.format(id=IDS[2])})",)


@pytest.mark.parametrize("refusal", [NOT_FOUND, NOT_FOUND_TWO, WRONG_STATE])
def test_an_instance_that_is_gone_already_is_no_failure(refusal: tuple[str, str]) -> None:
    ec2 = Ec2(naming(*refusal, IDS[2]))

    assert stop(ec2) == ([one for one in IDS if one != IDS[2]], ())
    assert len(ec2.batches) == 2


def test_two_that_are_named_one_after_the_other_are_both_dropped() -> None:
    first, second = naming(*SPOT, IDS[6]), naming(*PROTECTED, IDS[1])
    ec2 = Ec2(lambda ids: first(ids) or second(ids))

    stopped, failures = stop(ec2)

    assert stopped == [one for one in IDS if one not in (IDS[1], IDS[6])]
    assert [len(batch) for batch in ec2.batches] == [8, 7, 6]
    assert [failure.partition(":")[0] for failure in failures] == [IDS[6], IDS[1]]


def test_two_that_are_named_at_once_are_both_dropped() -> None:
    message = f"The instance IDs '{IDS[0]}, {IDS[7]}' do not exist"
    ec2 = Ec2(lambda ids: stop_refused("InvalidInstanceID.NotFound", message) if IDS[0] in ids else None)

    assert stop(ec2) == (IDS[1:7], ())
    assert len(ec2.batches) == 2


def test_all_may_be_named_in_the_end() -> None:
    ec2 = Ec2(naming(*PROTECTED, *IDS))

    stopped, failures = stop(ec2)

    assert (stopped, len(failures), len(ec2.batches)) == ([], 8, 8)


@pytest.mark.parametrize("bad", [(IDS[0],), (IDS[7],), (IDS[2], IDS[5]), (IDS[3], IDS[4])])
def test_an_instance_that_is_not_named_is_found_by_halves(bad: tuple[str, ...]) -> None:
    ec2 = Ec2(silent("UnsupportedOperation", *bad))

    stopped, failures = stop(ec2)

    assert stopped == [one for one in IDS if one not in bad]
    assert failures == tuple(f"{one}: could not be stopped (UnsupportedOperation: it cannot be done)" for one in bad)
    # Three halvings of eight for each; some of them in common.
    assert len(ec2.batches) <= 1 + 2 * 3 * len(bad)


def test_one_that_is_gone_and_not_named_is_found_by_halves_and_is_no_failure() -> None:
    assert stop(Ec2(silent("IncorrectInstanceState", IDS[3]))) == ([one for one in IDS if one != IDS[3]], ())


@pytest.mark.parametrize(
    "text",
    [
        "The instance ID 'i-0000000000000beef' does not exist",
        "The image ami-0000000000000001 and vol-0000000000000001 are odd",
        f"The network interface eni-{IDS[0].removeprefix('i-')} is odd",
        f"The instance {IDS[0]}00 is odd",
    ],
)
def test_names_that_are_not_in_the_batch_do_not_make_it_ask_for_ever(text: str) -> None:
    ec2 = Ec2(lambda _: stop_refused("UnsupportedOperation", text))

    stopped, failures = stop(ec2)

    # Halves down to each of the eight: 8 + 4 + 2 + 1.
    assert (stopped, len(failures), len(ec2.batches)) == ([], 8, 15)


@pytest.mark.parametrize(
    "code",
    [
        "RequestLimitExceeded",
        "Throttling",
        "TooManyRequestsException",
        "AuthFailure",
        "OptInRequired",
        "Blocked",
        "ExpiredToken",
        "RequestExpired",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "InternalError",
        "InternalFailure",
        "ServerInternal",
        "ServiceUnavailable",
        "Unavailable",
        "500",
        "503",
    ],
)
def test_what_has_to_do_with_no_single_instance_is_not_asked_about_again(code: str) -> None:
    # Also where the message names an instance: it is not that one's fault.
    ec2 = Ec2(lambda _: stop_refused(code, f"You are not authorized to stop {IDS[0]}"))

    stopped, failures = stop(ec2)

    assert (stopped, len(ec2.batches)) == ([], 1)
    assert failures == (f"{', '.join(IDS)}: could not be stopped ({code}: You are not authorized to stop {IDS[0]})",)


# https://repost.aws/knowledge-center/ec2-not-auth-launch
NAMED_DENIAL = (
    "UnauthorizedOperation",
    "You are not authorized to perform this operation. User: arn:aws:sts::111122223333:assumed-role/idle/idle is not "
    "authorized to perform: ec2:StopInstances on resource: arn:aws:ec2:us-east-1:111122223333:instance/{id} because "
    "no identity-based policy allows the ec2:StopInstances action. Encoded authorization failure message: 8sJ2k",
)


def test_an_instance_that_a_denial_names_is_dropped_and_the_others_are_stopped() -> None:
    ec2 = Ec2(naming(*NAMED_DENIAL, IDS[2]))

    stopped, failures = stop(ec2)

    assert (stopped, len(failures), len(ec2.batches)) == ([one for one in IDS if one != IDS[2]], 1, 2)


@pytest.mark.parametrize("code", sorted(DENIED))
def test_an_instance_that_a_denial_does_not_name_is_found_by_halves(code: str) -> None:
    ids = [f"i-{number:017x}" for number in range(50)]
    ec2 = Ec2(silent(code, ids[17]))

    stopped, failures = stop(ec2, ids)

    assert stopped == [one for one in ids if one != ids[17]]
    assert failures == (f"{ids[17]}: could not be stopped ({code}: it cannot be done)",)
    assert len(ec2.batches) <= 13


def test_where_all_are_denied_it_stops_asking() -> None:
    ids = [f"i-{number:017x}" for number in range(50)]
    ec2 = Ec2(lambda _: stop_refused("UnauthorizedOperation", "You are not authorized."))

    stopped, failures = stop(ec2, ids)

    assert (stopped, len(ec2.batches)) == ([], MAX_DENIED + 3)
    assert {one for failure in failures for one in failure.partition(":")[0].split(", ")} == set(ids)


@pytest.mark.parametrize(
    "error", [ReadTimeoutError(endpoint_url="https://ec2"), stop_refused("InternalError", "oops")]
)
def test_what_stopped_though_no_answer_came_counts_as_stopped(error: Exception) -> None:
    ec2 = Ec2(lambda _: error)
    ec2.stopped = IDS[:3]

    stopped, failures = stop(ec2)

    assert stopped == IDS[:3]
    assert [failure.partition(":")[0] for failure in failures] == [", ".join(IDS[3:]), ", ".join(IDS[:3])]
    assert "stopped, though EC2 did not say so" in failures[1]


@pytest.mark.parametrize(
    "error",
    [
        ReadTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com/"),
        ConnectTimeoutError(endpoint_url="https://ec2.us-east-1.amazonaws.com/"),
        BotoCoreError(),
    ],
)
def test_where_no_answer_came_the_request_is_not_sent_again(error: Exception) -> None:
    ec2 = Ec2(lambda _: error)

    stopped, failures = stop(ec2)

    assert (stopped, len(ec2.batches), len(failures)) == ([], 1, 1)


def test_one_batch_that_is_throttled_does_not_keep_the_next_from_being_stopped() -> None:
    ids = [f"i-{number:017x}" for number in range(120)]
    ec2 = Ec2(lambda batch: stop_refused("RequestLimitExceeded", "slow down") if ids[60] in batch else None)

    stopped, failures = stop(ec2, ids)

    assert stopped == ids[:50] + ids[100:]
    assert len(failures) == 1


def test_each_instance_that_is_refused_is_a_record_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    failures = Failures(Logger(service="stopping"))
    stopper(Ec2(naming(*PROTECTED, IDS[2])), failures).stop(IDS)

    assert f'"instance_id":"{IDS[2]}"' in capsys.readouterr().out
