"""What a cluster file says of Slurm, and what of that is refused at its line."""

from pathlib import Path

import pytest
from aws_cdk import App, Duration, Environment, Stack

from cdk_training_cluster import (
    LoginNodes,
    Preemption,
    SlurmNodes,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)
from cdk_training_cluster_file.orchestrators.slurm import SlurmSettings as Written
from cluster_files import RIGHT, problems


def _shown(settings: SlurmSettings) -> str:
    """Durations are equal only as what they are shown as."""
    return repr(
        [
            (value.to_human_string() if isinstance(value, Duration) else value, name)
            for each in (settings, *settings.queues, *settings.node_groups.values())
            for name, value in vars(each).items()
            if name not in {"queues", "node_groups"} or isinstance(each, SlurmQueue)
        ]
    )


def test_everything_of_the_construct_can_be_written() -> None:
    written = Written.model_validate(
        {
            "version": "26.05",
            "queues": [
                {"name": "train", "priority_tier": 10, "max_minutes": 60, "power_down_on_idle": True},
                {"name": "spare", "preemption": "requeue", "grace_minutes": 2.5, "node_groups": ["workers"]},
            ],
            "node_groups": {
                "workers": {"fixed": True, "scale_down_idle_minutes": 30, "custom_settings": {"Weight": "7"}}
            },
            "scale_down_idle_minutes": 20,
            "health_check_minutes": 5,
            "requeue_exit_codes": [98, 99],
            "accounting_days": 365,
            "size": "medium",
            "login": {"instance_type": "c7i.xlarge", "count": 2, "root_volume_gib": 80},
            "custom_settings": {"MinJobAge": "600"},
        }
    )
    assert _shown(written.to_slurm()) == _shown(
        SlurmSettings(
            version=SlurmVersion.V26_05,
            queues=[
                SlurmQueue("train", priority_tier=10, max_time=Duration.seconds(3600), power_down_on_idle=True),
                SlurmQueue(
                    "spare",
                    preemption=Preemption.REQUEUE,
                    grace_time=Duration.seconds(150),
                    node_groups=("workers",),
                ),
            ],
            node_groups={
                "workers": SlurmNodes(
                    fixed=True, scale_down_idle_time=Duration.seconds(1800), custom_settings={"Weight": "7"}
                )
            },
            scale_down_idle_time=Duration.seconds(1200),
            health_check_interval=Duration.seconds(300),
            requeue_exit_codes=(98, 99),
            accounting_days=365,
            size=SlurmSize.MEDIUM,
            login=LoginNodes(instance_type="c7i.xlarge", count=2, root_volume_gib=80),
            custom_settings={"MinJobAge": "600"},
        )
    )


def test_the_image_of_login_nodes_is_pinned() -> None:
    written = Written.model_validate({"login": {"image": "ami-0a1b2c3d4e5f67890"}})
    image = written.to_slurm("us-east-1").login.machine_image
    stack = Stack(App(), "Stack", env=Environment(region="us-east-1"))
    assert image is not None
    assert image.get_image(stack).image_id == "ami-0a1b2c3d4e5f67890"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("{version: '24.11'}", 'slurm.version: must be 25.11 or 26.05, got "24.11"'),
        ("{queues: [{name: q}]}", "slurm.queues[0].name: must be 3 to 25 letters, digits and hyphens"),
        ("{custom_settings: {SlurmdTimeout: '60'}}", "must name settings that AWS PCS takes for the cluster"),
        ("{login: {instance_type: p5.48xlarge}}", "instance_type of the login nodes must be without accelerators"),
        ("{queues: [{name: low, preemption: requeue}]}", "preemption of queue 'low' must be OFF"),
        ("{queues: [{name: one, node_groups: [others]}]}", "node groups of the cluster, which are"),
    ],
)
def test_what_slurm_cannot_be_told_is_refused_at_its_line(tmp_path: Path, written: str, said: str) -> None:
    found = problems(tmp_path, f"{RIGHT}orchestrator: {{slurm: {written}}}\n")
    assert any(each.startswith("cluster.yaml:12: ") and said in each for each in found), found
