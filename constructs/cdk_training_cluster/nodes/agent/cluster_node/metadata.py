"""The instance metadata service, as its second version is asked: with a token that is renewed."""

from __future__ import annotations

import http.client
import os
import time
import urllib.parse
from collections.abc import Callable

_ENDPOINT = "http://169.254.169.254"
_PREFIX = "/latest/meta-data/"
_SECONDS = 2
# The longest that the service gives. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/configuring-instance-metadata-service.html
_TOKEN_SECONDS = 21600
_RENEWED_BEFORE = 300


class Metadata:
    """What the instance metadata service says; the connection stays open from question to question."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask the service at `AWS_EC2_METADATA_SERVICE_ENDPOINT`, or where every instance has it.

        Args:
            clock: The seconds that have passed. Default: - the machine's.
        """
        address = urllib.parse.urlsplit(os.environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT") or _ENDPOINT)
        self._connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_SECONDS)
        self._clock = clock
        self._token, self._renewed_at = "", float("-inf")

    def get(self, path: str) -> str | None:
        """Return what the service has at a path. None: it has nothing there.

        Args:
            path: The path below `meta-data/`.

        Raises:
            OSError: The service does not answer, or refuses.
        """
        for _ in range(2):
            status, text = self._request("GET", _PREFIX + path, {"X-aws-ec2-metadata-token": self._valid_token()})
            if status == http.HTTPStatus.OK:
                return text
            if status == http.HTTPStatus.NOT_FOUND:
                return None
            if status != http.HTTPStatus.UNAUTHORIZED:
                break
            self._renewed_at = float("-inf")
        raise OSError(f"the instance metadata service answers {path} with status {status}")

    def _valid_token(self) -> str:
        if self._clock() >= self._renewed_at:
            headers = {"X-aws-ec2-metadata-token-ttl-seconds": str(_TOKEN_SECONDS)}
            status, self._token = self._request("PUT", "/latest/api/token", headers)
            if status != http.HTTPStatus.OK:
                raise OSError(f"the instance metadata service gives no token: status {status}")
            self._renewed_at = self._clock() + _TOKEN_SECONDS - _RENEWED_BEFORE
        return self._token

    def _request(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        try:
            self._connection.request(method, path, headers=headers)
            answer = self._connection.getresponse()
            return answer.status, answer.read().decode()
        except http.client.HTTPException as error:
            self._connection.close()
            raise OSError(f"the instance metadata service does not answer {path}: {error!r}") from error
        except OSError:
            self._connection.close()
            raise
