"""Values of a state that differ by rank, such as the cursor of a loader or the state of a generator.

Of what is not sharded torch.distributed.checkpoint keeps one rank's. So the ranks compare their values first, and
each writes those that differ apart, below its own number. They come back at the same number of ranks only: at another
one the script's own stay, since a second rank with the same random numbers would be worse than none.
"""

import io
import pickle
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import torch
from torch.utils._pytree import tree_flatten

from cluster_job.torch_ranks import TorchRanks

PREFIX = "values of rank "
_LARGEST_BYTES = 64 * 1024
"""Larger tensors are no cursors: comparing them would stall the job. A generator's state has 5 KB."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)  # others are sharded, and may not be moved by one rank

Path = tuple[Any, ...]
Plain = MutableMapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class RankValues:
    """What one rank wrote.

    Attributes:
        paths: Where values differed, on any rank.
        values: This rank's.
    """

    paths: Collection[Path]
    values: Mapping[Path, Any]

    def to_bytes(self) -> bytes:
        """Return it as a checkpoint holds it."""
        stream = io.BytesIO()
        torch.save((list(self.paths), dict(self.values)), stream)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, text: bytes) -> "RankValues":
        """Return what a checkpoint holds.

        Args:
            text: What `to_bytes` returned; as trustworthy as the checkpoint, which torch unpickles too.
        """
        paths, values = torch.load(io.BytesIO(text), map_location="cpu", weights_only=False)
        return cls(paths=paths, values=values)


def key_of(rank: int, world_size: int) -> str:
    """Return under which name a rank's values lie."""
    return f"{PREFIX}{rank} of {world_size}"


def apart(plain: Plain, names: Collection[str], ranks: TorchRanks) -> Plain:
    """Return a state in which what differs by rank lies apart; all ranks call it.

    Args:
        plain: What is to be written.
        names: The entries whose values may differ: not those of models and optimizers.
        ranks: The ranks that save together.
    """
    own = dict(_leaves({name: plain[name] for name in names}))
    digests = ranks.gather({path: digest for path, value in own.items() if (digest := _digest(value)) is not None})
    known = sorted({path for each in digests for path in each}, key=repr)
    differing = [path for path in known if len({each.get(path) for each in digests}) > 1]
    if not differing:
        return plain
    values = RankValues(paths=differing, values={path: own[path] for path in differing if path in own})
    return {**_without(plain, set(differing)), key_of(ranks.rank, ranks.world_size): values.to_bytes()}


def hide(plain: Plain, saved: RankValues) -> Mapping[Path, Any]:
    """Make room for what the checkpoint holds in place of values that differed; return what the script has there.

    Args:
        plain: What is to be loaded.
        saved: What one rank wrote.
    """
    found = dict(_leaves(plain))
    hidden = {path: found[path] for path in saved.paths if path in found}
    for path in hidden:
        _set(plain, path, None)
    return hidden


def put_back(plain: Plain, values: Mapping[Path, Any], hidden: Mapping[Path, Any]) -> None:
    """Set what was hidden, and what this rank wrote: also below keys that the script does not have yet.

    Args:
        plain: What was loaded.
        values: What this rank wrote; empty where there is another number of ranks.
        hidden: What the script had there.
    """
    for path, value in {**hidden, **values}.items():
        own: Any = hidden.get(path)
        is_moved = isinstance(value, torch.Tensor) and isinstance(own, torch.Tensor)
        _set(plain, path, value.to(own.device) if is_moved else value)


def _leaves(tree: Mapping[Any, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value


def _without(tree: Mapping[Any, Any], paths: Collection[Path], path: Path = ()) -> dict[Any, Any]:
    found = {}
    for name, value in tree.items():
        here = (*path, name)
        is_tree = isinstance(value, Mapping) and value and any(one[: len(here)] == here for one in paths)
        found[name] = None if here in paths else _without(value, paths, here) if is_tree else value
    return found


def _set(tree: Any, path: Path, value: object) -> None:  # noqa: ANN401 - nested dictionaries
    *above, name = path
    for one in above:
        tree = tree.setdefault(one, {})
    tree[name] = value


def _digest(value: object) -> bytes | None:
    """Return what is equal for equal values. None: it is sharded or large, and torch's own to keep."""
    leaves, structure = tree_flatten(value)
    digest = blake2b(str(structure).encode(), digest_size=16)
    for leaf in leaves:
        if isinstance(leaf, set | frozenset):  # each process has an order of its own
            parts = [_digest(one) for one in leaf]
            digest.update(b"".join(sorted(part for part in parts if part is not None)))
        elif not isinstance(leaf, torch.Tensor):
            digest.update(pickle.dumps(leaf))
        elif type(leaf) not in _PLAIN or leaf.numel() * leaf.element_size() > _LARGEST_BYTES:
            return None
        else:
            contents = leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            digest.update(f"{leaf.dtype} {tuple(leaf.shape)}".encode() + bytes(contents.tolist()))
    return digest.digest()
