"""AWS accepts what a rule of templates refuses: nothing but the rule would say what it costs."""

import pytest

from local_aws_scene import Stacks
from silent_costs import COSTLY, Costly, changed, costly_name


@pytest.mark.parametrize("row", COSTLY, ids=costly_name)
def test_what_costs_silently_is_deployed(stacks: Stacks, row: Costly) -> None:
    name = stacks.create(changed(row.kind, row.changes))
    assert stacks.reasons(name) == {}
    assert stacks.status(name) == "CREATE_COMPLETE"
