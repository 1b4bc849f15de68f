"""The process that writes checkpoints, which torch starts beside each rank's."""

import contextlib
import multiprocessing
import sys
from collections.abc import Iterator
from types import TracebackType

from torch.distributed.checkpoint import _async_process_executor as executor


def lives() -> bool:
    """Return whether the process that writes is there: the kernel may kill it where memory is short."""
    process = executor._CHECKPOINT_PROCESS
    return process is not None and process._save_process.is_alive()


def end_writer_on_errors() -> None:
    """Let a process that fails end at once, so that its launcher starts it again.

    Python waits at its end for the thread that waits for the process that writes, which in turn waits for those of
    other ranks: for half an hour, if one of them is lost with its node.
    """
    before = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        before(kind, error, traceback)
        for process in multiprocessing.active_children():  # as Python itself does, but later
            process.terminate()

    sys.excepthook = end


@contextlib.contextmanager
def script_hidden() -> Iterator[None]:
    """Let the process that writes not run the job's script again, until it has started.

    What the new process imports is said when it starts, so that processes which the script itself spawns later find
    the script. Python's spawn imports the main module in the new process, which trains if the script has no
    `if __name__ == "__main__":`. https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-forkserver-start-methods
    """
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), main.__spec__
    main.__file__ = main.__spec__ = None
    try:
        yield
    finally:
        main.__file__, main.__spec__ = file, spec
