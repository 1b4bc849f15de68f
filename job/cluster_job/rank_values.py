"""Small values of a state, such as the cursor of a loader or the state of a generator.

torch.distributed.checkpoint keeps one rank's, and reads only keys that the script has already. So the ranks compare
their small values first, and write them apart: rank 0 those that are equal, each rank those that differ, below its
own number. Those that differ come back at the same number of ranks only: at another one the script's own stay, since
a second rank with the same random numbers would be worse than none.
"""

import io
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from cluster_job.plain_values import NotPlainError, from_json, to_json
from cluster_job.torch_ranks import TorchRanks

PREFIX = "values of rank "
_LARGEST_BYTES = 64 * 1024
"""Larger tensors are torch's own to keep: comparing them would stall the job. A generator's state has 5 KB."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)  # others are sharded, and may not be moved by one rank

Place = tuple[Any, ...]
Plain = MutableMapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RankValues:
    """What one rank wrote.

    Attributes:
        paths: Where values differed, on any rank.
        values: This rank's; rank 0's with those that are equal on all.
    """

    paths: Collection[Place]
    values: Mapping[Place, Any]

    def to_tensor(self) -> torch.Tensor:
        """Return it as a checkpoint holds it: torch reads tensors without running code, and other values not."""
        text = to_json([list(self.paths), list(self.values.items())])
        return torch.frombuffer(bytearray(text), dtype=torch.uint8)

    @classmethod
    def from_tensor(cls, text: torch.Tensor) -> "RankValues":
        """Return the values that a checkpoint holds.

        Args:
            text: The result of `to_tensor`.

        Raises:
            ValueError: It is something else.
        """
        paths, items = from_json(bytes(text.tolist()))
        return cls(paths=set(paths), values=dict(items))

    @classmethod
    def from_pickle(cls, text: bytes) -> "RankValues":
        """Return the values that an earlier release wrote; who wrote them can run code here.

        Args:
            text: The pickle.
        """
        paths, values = torch.load(io.BytesIO(text), map_location="cpu", weights_only=False)
        return cls(paths=set(paths), values=values)


class UntrustedError(RuntimeError):
    """A checkpoint holds a pickle that nobody has asked to read."""


def key_of(rank: int, world_size: int) -> str:
    """Return under which name a rank's values lie."""
    return f"{PREFIX}{rank} of {world_size}"


def apart(plain: Plain, names: Collection[str], ranks: TorchRanks) -> Plain:
    """Return a state in which small values lie apart; all ranks call it.

    Args:
        plain: What is to be written.
        names: The entries to look into: not those of models and optimizers.
        ranks: The ranks that save together.
    """
    own = dict(_leaves({name: plain[name] for name in names}))
    digests = ranks.gather(
        {path: found for path, value in own.items() if (found := _digest(path, value)) is not None}
    )
    known = sorted({path for each in digests for path in each}, key=repr)
    differing = [path for path in known if len({each.get(path) for each in digests}) > 1]
    if not known:
        return plain
    kept = differing if ranks.rank else known
    values = RankValues(paths=differing, values={path: own[path] for path in kept if path in own})
    return {**_without(plain, set(known)), key_of(ranks.rank, ranks.world_size): values.to_tensor()}


def hide(plain: Plain, paths: Collection[Place]) -> Plain:
    """Return a state without what torch is not to read; the script's own dictionaries stay as they are.

    Args:
        plain: What is to be loaded.
        paths: Where the checkpoint has values that lie apart: nothing above or below them is shown either.
    """
    above = {path[:length] for path in paths for length in range(1, len(path) + 1)}
    below = set(paths)
    shown: Plain = {}
    for path, value in _leaves(plain):
        if path not in above and not any(path[:length] in below for length in range(1, len(path))):
            _set(shown, path, value)
    return shown


def put_back(plain: Plain, shown: Plain, values: Mapping[Place, Any]) -> None:
    """Set what torch has read, and what lay apart: also below keys that the script does not have yet.

    Args:
        plain: What is to be loaded.
        shown: What `hide` returned, after torch has read it.
        values: What lay apart; of what differed this rank's, or nothing where there is another number of ranks.
    """
    own = dict(_leaves(plain))
    for path, value in {**dict(_leaves(shown)), **values}.items():
        _set(plain, path, _filled(own.get(path), value))


def _leaves(tree: Mapping[Any, Any], path: Place = ()) -> Iterator[tuple[Place, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _without(tree: Mapping[Any, Any], paths: Collection[Place], path: Place = ()) -> dict[Any, Any]:
    found = {}
    for name, value in tree.items():
        here = (*path, name)
        if here not in paths:
            is_tree = isinstance(value, Mapping) and any(one[: len(here)] == here for one in paths)
            found[name] = _without(value, paths, here) if is_tree else value
    return found


def _set(tree: Any, path: Place, value: object) -> None:  # noqa: ANN401 - nested dictionaries
    *above, name = path
    for one in above:
        if not isinstance(tree.get(one), MutableMapping):
            tree[one] = {}
        tree = tree[one]
    tree[name] = value


def _filled(own: object, value: object) -> object:
    """Return a value in the script's own tensors where these have its structure: on their devices, in their types."""
    try:
        return tree_map(_filled_tensor, value, own)
    except ValueError:  # another structure
        return value


def _filled_tensor(value: object, own: object) -> object:
    if value is own or not isinstance(value, torch.Tensor) or not isinstance(own, torch.Tensor):
        return value
    if own.shape != value.shape:
        return value.to(own.device)
    own.detach().copy_(value)  # as torch reads tensors
    return own


def _digest(path: Place, value: object) -> bytes | None:
    """Return what is equal for equal values. None: it is sharded or large, and torch's own to keep."""
    tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]
    if any(type(one) not in _PLAIN or one.numel() * one.element_size() > _LARGEST_BYTES for one in tensors):
        return None
    try:
        return blake2b(to_json([path, value]), digest_size=16).digest()
    except NotPlainError as error:
        where = ".".join(map(str, path))
        raise TypeError(
            f"{where} in the state of the checkpoint holds a {error}, which only a pickle can keep: give "
            "run.checkpoint numbers, strings, tensors, arrays, lists, tuples, sets and dictionaries of them, or an "
            "object with state_dict() and load_state_dict()"
        ) from None
