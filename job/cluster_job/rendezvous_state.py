"""The state of torch's rendezvous, which torch keeps as a pickle: every job of the cluster may write the table that
holds it, and a pickle can run any code of its writer.

https://docs.python.org/3/library/pickle.html#restricting-globals
"""

import io
import pickle

_RENDEZVOUS = "torch.distributed.elastic.rendezvous.dynamic_rendezvous"
_CLASSES = frozenset(
    {
        (_RENDEZVOUS, "_RendezvousState"),
        (_RENDEZVOUS, "_NodeDesc"),
        ("datetime", "datetime"),
        ("datetime", "timedelta"),
        ("datetime", "timezone"),
    }
)


class ForeignStateError(Exception):
    """What lies in the table is no state of a rendezvous; the message is a sentence."""


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in _CLASSES:
            raise ForeignStateError(f"the state of the rendezvous in the table of runs names {module}.{name}")
        return super().find_class(module, name)


def checked(state: bytes) -> bytes:
    """Return a state that torch may unpickle.

    Args:
        state: What lies in the table.

    Raises:
        ForeignStateError: It names anything that the state of a rendezvous does not consist of, or is no pickle.
    """
    try:
        _Reader(io.BytesIO(state)).load()
    except ForeignStateError:
        raise
    except Exception as error:  # whatever a pickle of other bytes raises
        raise ForeignStateError(
            f"the state of the rendezvous in the table of runs cannot be read: {error}"
        ) from error
    return state
