"""What a check of a feature is: what the template says of it, and what the account has, thing by thing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.readback import Client
from rehearsal.templates import Resource

Facts = Mapping[str, Mapping[str, Any]]
"""What is so of each thing, by its name."""


@dataclass(frozen=True)
class Deployment:
    """A deployed cluster.

    Attributes:
        client: Makes clients of the account.
        resources: What its templates say, with the ids of what was made.
        found: What was read back, as `readback` and `node_groups` describe it.
        zone: Its Availability Zone.
    """

    client: Client
    resources: Sequence[Resource]
    found: Mapping[str, Any]
    zone: str = ""


@dataclass(frozen=True)
class Check:
    """The comparison of a feature's things.

    Attributes:
        thing: What the things are called, such as `node group`.
        said: Returns what the template says.
        found: Returns what the account has; only what the template says is compared.
    """

    thing: str
    said: Callable[[Deployment], Facts]
    found: Callable[[Deployment], Facts]

    def differences(self, deployment: Deployment) -> Iterator[str]:
        """Say where the account differs from the template, a sentence each.

        Args:
            deployment: The deployed cluster.
        """
        said, found = self.said(deployment), self.found(deployment)
        for name in found.keys() - said.keys():
            yield f"{self.thing} {name} is not in the template"
        for name, facts in said.items():
            if name not in found:
                yield f"{self.thing} {name} is absent"
                continue
            for key, value in facts.items():
                if found[name].get(key) != value:
                    yield f"{self.thing} {name}: {key} is {found[name].get(key)!r}, the template says {value!r}"
