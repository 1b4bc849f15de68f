"""The stacks: each came up, with every resource of its template and no other."""

from collections import Counter

from rehearsal.checks.check import Check, Deployment, Facts

_UP = ("CREATE_COMPLETE", "UPDATE_COMPLETE")


def _said(deployment: Deployment) -> Facts:
    made = {name: dict.fromkeys(stack["resources"], 0) for name, stack in deployment.found["stacks"].items()}
    types: dict[str, Counter[str]] = {}
    for resource in deployment.resources:
        types.setdefault(resource.stack, Counter())[resource.type] += 1
    return {name: {"status": _UP[0], **made.get(name, {}), **counted} for name, counted in types.items()}


def _found(deployment: Deployment) -> Facts:
    wanted = dict.fromkeys((resource.type for resource in deployment.resources), 0)
    return {
        name: {**wanted, **stack["resources"], "status": _UP[0] if stack["status"] in _UP else stack["status"]}
        for name, stack in deployment.found["stacks"].items()
    }


STACKS = Check("stack", _said, _found)
