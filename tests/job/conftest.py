"""DynamoDB for the jobs of `make test-torch`; moto keeps its tables as long as the process runs."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - other tests here need neither

    from torchrun_job import make_table  # noqa: PLC0415

    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    address = f"http://127.0.0.1:{server.get_host_and_port()[1]}"
    make_table(address)
    yield address
    server.stop()
