"""What the orchestrator that launches a group's nodes does not take: the cells of `LEGALITY`, a rule each."""

from collections.abc import Iterator

from cdk_training_cluster.network import InterfaceLayout
from cdk_training_cluster.nodes.legality import LEGALITY, Cell, Choice
from cdk_training_cluster.nodes.node_group import Placement
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules.context import NodeGroupContext
from cdk_training_cluster.validation.rule import Level, Rule

_SETTINGS = {
    Choice.CLUSTER_PLACEMENT: "placement",
    Choice.BANDWIDTH_OPTIMISED: "interface_layout",
    Choice.WARM_POOL: "warm_pool",
}
"""The settings that stand for choices; the others are ways to buy."""


def _given(context: NodeGroupContext, choice: Choice) -> str | None:
    """Return how a group's settings say a choice. None: they do not."""
    group, words = context.group, context.words
    match choice:
        case Choice.CLUSTER_PLACEMENT:
            return words.value(group.placement) if group.placement is Placement.CLUSTER else None
        case Choice.BANDWIDTH_OPTIMISED:
            is_wide = group.interface_layout is InterfaceLayout.BANDWIDTH_OPTIMISED
            return words.value(group.interface_layout) if is_wide else None
        case Choice.WARM_POOL:
            return None if group.warm_pool is None else "given"
    return context.call if group.capacity.call == choice.value else None


def _rule(kind: OrchestratorKind, choice: Choice, cell: Cell) -> Rule[NodeGroupContext]:
    setting = _SETTINGS.get(choice, "capacity")

    def find(context: NodeGroupContext) -> Iterator[str]:
        given = _given(context, choice) if context.orchestrator is kind else None
        if given is None:
            return
        if cell.inferred:
            yield (
                f"{setting} is {given}, and no document of AWS says that {kind.value} takes it: try it with one node "
                "before you rely on it"
            )
            return
        calls = {each: context.words.call(f"Capacity.{each}()") for each in ("spot", "on_demand", "training_plan")}
        yield f"{setting} must not be {given} with {kind.value}, which {cell.instead.format(**calls)}"

    return Rule(
        id=f"{_camel(kind)}{_camel(choice)[0].upper()}{_camel(choice)[1:]}",
        source=cell.source,
        find=find,
        setting=() if cell.inferred else (setting,),
        level=Level.WARNING if cell.inferred else Level.ERROR,
    )


def _camel(name: OrchestratorKind | Choice) -> str:
    first, *others = name.name.lower().split("_")
    return first + "".join(each.capitalize() for each in others)


ORCHESTRATOR_RULES = tuple(
    _rule(kind, choice, cell)
    for kind, cells in LEGALITY.items()
    for choice, cell in cells.items()
    if cell.instead or cell.inferred
)
