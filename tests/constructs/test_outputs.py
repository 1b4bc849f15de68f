"""The outputs that the documentation names, for those who use the construct in a stack of their own."""

import re

from aws_cdk.assertions import Template

from cdk_training_cluster import Budget, NodeGroup, Observability, TrainingCluster
from documents import PAGES, text_of
from synthesis import ZONE, new_stack


def test_every_output_that_a_page_names_is_made() -> None:
    """All but the one of the foundation, which the cluster file's stacks have, and those of orchestrators."""
    stack = new_stack()
    groups = [NodeGroup("box", instance_types=["g5.xlarge"], count=1)]
    clusters = [
        TrainingCluster(
            stack,
            name,
            cluster_name=name.lower(),
            availability_zone=ZONE,
            node_groups=groups,
            observability=Observability.prometheus(),
            budget=Budget(monthly_usd=500, emails=["ml@example.com"]),
        )
        for name in ("First", "Second")
    ]
    clusters[0].make_outputs()
    clusters[1].make_outputs(clusters[1])
    made = Template.from_stack(stack).find_outputs("*")
    named = {name for page in PAGES for name in re.findall(r"outputs? `([A-Z]\w+)`", text_of(page))}
    assert {"AlertTopicArn", "PowerFunctionName", "ResumeCommand", "ActivateCostTagCommand"} <= named
    assert named - made.keys() == {"StateTableName", "KubeconfigCommand", "SubmitTrainCommand"}
    assert {name for name in made if name.startswith("Second")} != set()
