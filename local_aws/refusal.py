"""The one exception with which a service of the local AWS refuses a request."""

from moto.core.exceptions import ServiceException


class Refusal(ServiceException):  # type: ignore[misc] # moto's modules are untyped here
    """A service's refusal: AWS's own error code and message, answered with status 400 or as its model says."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
