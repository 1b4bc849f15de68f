"""Small values of a state as JSON: a checkpoint of them runs no code when it is read, as a pickle does.

What JSON does not have is an object with one key, which names the type: `{"tuple": […]}`. Tensors and arrays are
their type, shape and bytes.
"""

import base64
import json
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import torch

_DICTIONARIES: Mapping[str, Callable[[Any], Any]] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}
_SEQUENCES: Mapping[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_SIZE, _BYTES, _TENSOR, _ARRAY, _SCALAR = "Size", "bytes", "tensor", "array", "scalar"
_DTYPE, _DEVICE, _COMPLEX = "dtype", "device", "complex"


class NotPlainError(TypeError):
    """A value is of a type that has no form here."""


def to_json(value: object) -> bytes:
    """Return a value as JSON, the same for equal values.

    Args:
        value: The value.

    Raises:
        NotPlainError: It holds an object of another type.
    """
    return json.dumps(_encoded(value), separators=(",", ":")).encode()


def from_json(text: bytes) -> Any:  # noqa: ANN401 - whatever was written
    """Return the value that JSON holds.

    Args:
        text: The result of `to_json`.

    Raises:
        ValueError: It is something else.
    """
    try:
        return _decoded(json.loads(text))
    except (KeyError, TypeError, AttributeError, RuntimeError) as error:
        raise ValueError(f"no values of a checkpoint: {error}") from error


def _encoded(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line a type
    kind = type(value)
    name = kind.__name__
    if value is None or kind in {bool, int, float, str}:
        return value
    if kind is list:
        return [_encoded(one) for one in value]
    if isinstance(value, Mapping):
        given = name if _DICTIONARIES.get(name) is kind else "dict"
        return {given: [[_encoded(key), _encoded(one)] for key, one in value.items()]}
    if _SEQUENCES.get(name) is kind:
        parts = [_encoded(one) for one in value]
        return {name: parts if kind is tuple else sorted(parts, key=json.dumps)}  # each process has its own order
    if kind is torch.Size:
        return {_SIZE: list(value)}
    if kind is torch.dtype:
        return {_DTYPE: str(value).removeprefix("torch.")}
    if kind is torch.device:
        return {_DEVICE: str(value)}
    if kind is complex:
        return {_COMPLEX: [value.real, value.imag]}
    if kind in {bytes, bytearray}:
        return {_BYTES: base64.b64encode(value).decode()}
    if isinstance(value, torch.Tensor):
        flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        return {_TENSOR: [str(value.dtype).removeprefix("torch."), list(value.shape), _text(bytes(flat.tolist()))]}
    if kind.__module__ == "numpy" and hasattr(value, "tobytes") and not value.dtype.hasobject:
        what = _ARRAY if name == "ndarray" else _SCALAR
        return {what: [value.dtype.str, list(value.shape), _text(value.tobytes())]}
    raise NotPlainError(f"{kind.__module__}.{name}")


def _decoded(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line a type
    if isinstance(value, list):
        return [_decoded(one) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, held),) = value.items()
    if kind in _DICTIONARIES:
        return _DICTIONARIES[kind]({_decoded(key): _decoded(one) for key, one in held})
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](_decoded(one) for one in held)
    if kind == _SIZE:
        return torch.Size(held)
    if kind == _DTYPE:
        return _dtype(held)
    if kind == _DEVICE:
        return torch.device(held)
    if kind == _COMPLEX:
        return complex(*held)
    if kind == _BYTES:
        return base64.b64decode(held)
    name, shape, contents = held
    if kind == _TENSOR:
        given = bytearray(base64.b64decode(contents))
        flat = torch.frombuffer(given, dtype=torch.uint8) if given else torch.empty(0, dtype=torch.uint8)
        return flat.view(_dtype(name)).reshape(shape)
    import numpy as np  # noqa: PLC0415 - whoever wrote an array has it

    array = np.frombuffer(base64.b64decode(contents), dtype=np.dtype(name)).reshape(shape)
    return array.copy() if kind == _ARRAY else array[()]


def _dtype(name: str) -> torch.dtype:
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TypeError(f"no type of a tensor: {name}")
    return found


def _text(contents: bytes) -> str:
    return base64.b64encode(contents).decode()
