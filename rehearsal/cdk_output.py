"""Finds in what the CDK CLI said why it failed, for one sentence to a person; the log has the rest."""

import re

# stack | done | time | status | type | construct's path (logical id) reason
_FAILED = re.compile(
    r"^\S+ \|[^|]*\|(?:[^|]*\|)? *(?:CREATE|UPDATE|DELETE|IMPORT)_FAILED +\| (?P<type>\S+) +\| (?P<rest>.+)$",
    re.MULTILINE,
)
_PATH = re.compile(r"^(?P<path>\S+)(?: \((?P<id>\w+)\))? ?(?P<reason>.*)$")
_HANDLER = re.compile(r'Resource handler returned message: "(?P<message>.*)" \(RequestToken: .*\)$')
_SERVICE = re.compile(r" \(Service: [^()]*Error Code: (?P<code>[\w.]+)[^()]*\)")
# A consequence of another failure, and never the reason.
_CANCELLED = ("Resource creation cancelled", "Resource update cancelled", "Resource deletion cancelled")
_OWN = re.compile(r"^error: (.+)$", re.MULTILINE)
# What no resource is to blame for, such as an export that is in use.
_STACK = re.compile(
    r"DeploymentError: The stack named (?P<stack>\S+) failed to deploy: \w+ \((?P<why>.+)\)$", re.MULTILINE
)
_CROSS = re.compile(r"^\s*❌ +(?P<message>.+)$", re.MULTILINE)
_UP_TO_ITS_NAME = re.compile(r"^.*?\b\w*Error: ")
_FRAME = re.compile(r"^\s*(?:at |\.{3}|[}{]|\w+: .*,$|Source Location|NOTICES|$)")
_NOTHING = "it gave no reason"


def reason(said: str) -> str:
    """Return the reason of a failure in one line.

    That is the first resource that failed with its reason; else what CloudFormation says of the
    stack; else the app's own errors, which are sentences already;
    else the CLI's own error; else the last line that is not a stack frame.

    Args:
        said: All that the CLI said, without colours.
    """
    for failed in _FAILED.finditer(said):
        if failed["type"] != "AWS::CloudFormation::Stack" and not any(word in failed["rest"] for word in _CANCELLED):
            return _resource(failed["type"], failed["rest"])
    if stack := _STACK.search(said):
        return f"{stack['stack']}: {stack['why']}"
    own = list(dict.fromkeys(_OWN.findall(said)))
    if own:
        return "; ".join(own)
    if crossed := _CROSS.search(said):
        return _UP_TO_ITS_NAME.sub("", crossed["message"]).strip()
    lines = [line.strip() for line in said.splitlines() if not _FRAME.match(line)]
    return lines[-1] if lines else _NOTHING


def _resource(kind: str, rest: str) -> str:
    parts = _PATH.match(rest.strip())
    if parts is None:
        return f"{kind}: {rest.strip()}"
    return f"{kind} {parts['path']}: {plain(parts['reason'].strip()) or _NOTHING}"


def plain(why: str) -> str:
    """Return the reason of a resource's failure without what CloudFormation puts around it.

    Args:
        why: The reason, as CloudFormation's events have it.
    """
    if wrapped := _HANDLER.search(why):
        why = wrapped["message"]
    return _SERVICE.sub(lambda service: f" ({service['code']})", why)
