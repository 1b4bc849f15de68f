"""What surprises of a node group's nodes: images that move, and file systems that are reached slowly."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from constructs import IConstruct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.nodes.bootstrap import Mount, reaches_lustre
from cdk_training_cluster.nodes.layouts import LaunchLayout
from cdk_training_cluster.nodes.rules import NodeGroupContext
from cdk_training_cluster.validation.words import words_of


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
    if image is not None and mount is not None and not image.has_lustre_client:
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-client-matrix.html
        yield (
            "lustreClient",
            f"node group {name!r} mounts a file system, and the newest image of {image.parameter_name} has no Lustre "
            "client: each node installs the one for its kernel at first boot, and cannot be set up while FSx for "
            f"Lustre has none for a newer kernel. Pin an image that you have tested, or one with the client in it, "
            f"with {setting}.",
        )


def moving_images(images: Iterable[LaunchLayout]) -> tuple[str, ...]:
    """Return the parameters whose newest image nodes take.

    Args:
        images: The layouts whose launch templates name an image.
    """
    return tuple(dict.fromkeys(layout.image.parameter_name for layout in images if layout.image is not None))


def warn_of_moving_images(scope: IConstruct, taken: Mapping[str, Sequence[str]]) -> None:
    """Warn once of all node groups whose image a later deployment may change.

    Args:
        scope: The cluster, or the nodes that stand alone.
        taken: The parameters of their images, by node group.
    """
    groups = [name for name, parameters in taken.items() if parameters]
    images = list(dict.fromkeys(parameter for name in groups for parameter in taken[name]))
    if groups:
        several = len(groups) > 1
        warn(
            scope,
            "latestImage",
            f"node group{'s' if several else ''} {' and '.join(map(repr, groups))} take{'' if several else 's'} the "
            f"newest image{'s' if len(images) > 1 else ''} of {' and '.join(images)}: a later deployment may move "
            f"drivers under a running fleet. Pin the image you have tested with {words_of(scope).image_setting}.",
        )
