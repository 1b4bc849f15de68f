"""Which versions of their launch template the nodes of a group run: a deployment reaches later launches only.

https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html#update-warm-pool
"""

from collections import Counter

from cluster_common.owners.groups import is_old
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem


def count_versions(group: Group) -> dict[str, int]:
    """Return how many of a group's nodes run each launch template version, such as `lt-0a1b2c3d4e5f67890 3`."""
    live = (group.nodes[one].template for one in group.live_ids)
    return dict(sorted(Counter(template for template in live if template).items()))


def find_mixture(group: Group) -> Problem | None:
    """Say that nodes of one group run different versions of its launch template. None: they do not."""
    versions = count_versions(group)
    templates = {version.partition(" ")[0] for version in versions}
    # Types of different layouts have a launch template each.
    old = sum(is_old(version, group.templates) for version in versions)
    if len(templates) == len(versions) and old in (0, len(versions)):
        return None
    counts = ", ".join(f"{'1 node' if number == 1 else f'{number} nodes'} {of}" for of, number in versions.items())
    return Problem(
        kind=ProblemKind.MIXED_VERSIONS,
        sentence=f"{group.node_group}: its nodes run different versions of their launch template ({counts}), and so "
        "perhaps different images: a deployment changed it, and nodes that ran kept theirs. When the work is saved, "
        "stop and start the group to bring all of them to the newest.",
    )
