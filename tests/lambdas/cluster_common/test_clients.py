from collections.abc import Callable
from typing import Any

import pytest

from cluster_common import clients


@pytest.mark.parametrize("make", [clients.auto_scaling, clients.cloudwatch, clients.ec2, clients.sns])
def test_every_client_retries_with_pauses_and_gives_up_before_the_function_does(
    make: Callable[[], Any],
) -> None:
    config = make().meta.config

    assert config.retries == {"mode": "standard", "total_max_attempts": 4}
    assert (config.connect_timeout, config.read_timeout) == (3, 10)


def test_what_the_other_work_must_not_wait_for_gives_up_soon() -> None:
    client: Any = clients.ssm()
    config = client.meta.config

    assert config.retries == {"mode": "standard", "total_max_attempts": 2}
    assert (config.connect_timeout, config.read_timeout) == (2, 3)


def test_a_table_that_does_not_answer_leaves_the_power_function_time_to_say_so() -> None:
    client: Any = clients.dynamodb()
    config = client.meta.config

    assert config.retries == {"mode": "standard", "total_max_attempts": 3}
    assert 3 * (config.connect_timeout + config.read_timeout) == 15


def test_what_must_not_be_done_twice_is_asked_for_once() -> None:
    client: Any = clients.auto_scaling_once()
    config = client.meta.config

    assert config.retries == {"mode": "standard", "total_max_attempts": 1}
    assert (config.connect_timeout, config.read_timeout) == (3, 10)


def test_another_function_is_waited_for_as_long_as_it_may_run_and_asked_once() -> None:
    client: Any = clients.lambda_()
    config = client.meta.config

    assert config.retries == {"mode": "standard", "total_max_attempts": 1}
    assert (config.connect_timeout, config.read_timeout) == (3, 60)


def test_a_client_is_made_once() -> None:
    assert clients.auto_scaling() is clients.auto_scaling()
