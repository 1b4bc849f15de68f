"""The queues of Slurm: which there are, whose nodes each uses, and how it is configured."""

from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.templates import of_type


def _said(deployment: Deployment) -> Facts:
    groups = of_type(deployment.resources, "AWS::PCS::ComputeNodeGroup")
    names = {f"{group.id}.Id": group.properties["Name"] for group in groups}
    return {
        queue.properties["Name"]: {
            "node_groups": [
                names[each["ComputeNodeGroupId"]] for each in queue.properties["ComputeNodeGroupConfigurations"]
            ],
            "settings": {
                each["ParameterName"]: each["ParameterValue"]
                for each in queue.properties["SlurmConfiguration"]["SlurmCustomSettings"]
            },
        }
        for queue in of_type(deployment.resources, "AWS::PCS::Queue")
    }


SLURM_QUEUES = Check("queue", _said, lambda deployment: deployment.found.get("queues", {}))
