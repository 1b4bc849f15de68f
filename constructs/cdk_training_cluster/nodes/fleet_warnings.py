"""What surprises of a node group's nodes: images that move, and file systems that are reached slowly."""

from collections.abc import Iterable, Iterator

from cdk_training_cluster.nodes.bootstrap import Mount, reaches_lustre
from cdk_training_cluster.nodes.layouts import LaunchLayout
from cdk_training_cluster.nodes.rules import NodeGroupContext


def fleet_warnings(
    nodes: NodeGroupContext, images: Iterable[LaunchLayout], mount: Mount | None
) -> Iterator[tuple[str, str]]:
    """Yield warnings by the names of their rules.

    Args:
        nodes: The node group, checked.
        images: The layouts whose launch templates name an image.
        mount: The file system that the nodes mount. None: they mount none.
    """
    for layout in images:
        yield from _of_a_moving_image(nodes, layout, mount)
    slow = [info.name for info in nodes.infos if nodes.group.efa is False or not reaches_lustre(info)]
    if mount is not None and mount.efa and slow:
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/configure-efa-clients.html
        yield (
            "fileSystemOverTcp",
            f"node group {nodes.group.name!r} reaches the EFA-enabled file system over TCP on {' and '.join(slow)}, "
            "at 100 Gbps a node at most: FSx supports EFA on Nitro v4 and later, but not on trn2.",
        )


def _of_a_moving_image(
    nodes: NodeGroupContext, layout: LaunchLayout, mount: Mount | None
) -> Iterator[tuple[str, str]]:
    image, name, setting = layout.image, nodes.group.name, nodes.words.image_setting
    if image is None:
        return
    if mount is not None and not image.has_lustre_client:
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-client-matrix.html
        yield (
            "lustreClient",
            f"node group {name!r} mounts a file system, and the newest image of {image.parameter_name} has no Lustre "
            "client: each node installs the one for its kernel at first boot, and cannot be set up while FSx for "
            f"Lustre has none for a newer kernel. Pin an image that you have tested, or one with the client in it, "
            f"with {setting}.",
        )
    yield (
        "latestImage",
        f"node group {name!r} takes the newest image of {image.parameter_name}: a later deployment may move drivers "
        f"under a running fleet. Pin the image you have tested with {setting}.",
    )
