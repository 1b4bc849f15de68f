"""Systems Manager documents of the type Command: what their contents must be; moto reads them not at all.

https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-schemas-features.html
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import Any

import yaml
from moto.core.responses import ActionResult

from local_aws.refusal import Refusal

SHELL = "aws:runShellScript"
_SCHEMA = "2.2"
_TYPES = frozenset({"Boolean", "Integer", "MapList", "String", "StringList", "StringMap"})
_STEP = frozenset({"action", "inputs", "name", "precondition"})
_INPUTS = frozenset({"runCommand", "timeoutSeconds", "workingDirectory"})
_REFERENCE = re.compile(r"\{\{\s*([A-Za-z0-9_.:-]+)\s*\}\}")


def checked(original: Callable[[Any], ActionResult]) -> Callable[[Any], ActionResult]:
    """Return CreateDocument or UpdateDocument so that it reads a Command document first."""

    @wraps(original)
    def action(response: Any) -> ActionResult:
        kind = response._get_param("DocumentType")
        before = response.ssm_backend._documents.get(response._get_param("Name"))
        if original.__name__ == "update_document" and before is not None:
            kind = before.get_default_version().document_type
        content = yaml.safe_load(response._get_param("Content")) if kind in {None, "Command"} else None
        if isinstance(content, Mapping):
            for problem in _problems(content):
                raise Refusal("InvalidDocumentContent", problem)
        return original(response)

    return action


def _problems(content: Mapping[str, Any]) -> Iterator[str]:
    if str(content.get("schemaVersion")) != _SCHEMA:
        yield f"The schema version of a Command document here is {_SCHEMA}, not {content.get('schemaVersion')}."
    parameters, steps = content.get("parameters") or {}, content.get("mainSteps") or []
    for name, declared in parameters.items():
        if declared.get("type") not in _TYPES:
            yield f"The parameter {name} has the type {declared.get('type')}, which is none of {sorted(_TYPES)}."
        pattern, default = declared.get("allowedPattern"), declared.get("default")
        if pattern and isinstance(default, str) and not re.search(pattern, default):
            yield f"The default of the parameter {name} does not match {pattern}."
    if not steps:
        yield "A document has at least one step in mainSteps."
    for name, count in Counter(step.get("name") for step in steps).items():
        if name is None or count > 1:
            yield f"The name of each step must be there and unique, unlike {name}."
    for step in steps:
        yield from _of_step(step, parameters)


def _of_step(step: Mapping[str, Any], parameters: Mapping[str, Any]) -> Iterator[str]:
    others = sorted((set(step) - _STEP) | (set(step.get("inputs") or {}) - _INPUTS))
    if step.get("action") != SHELL or others:
        raise NotImplementedError(f"a step of the action {step.get('action')} with {', '.join(others)}")
    lines = step["inputs"].get("runCommand")
    if not isinstance(lines, list) or not lines or not all(isinstance(line, str) for line in lines):
        yield f"The step {step.get('name')} needs runCommand, a list of lines."
        return
    named = {name for line in lines for name in _REFERENCE.findall(line)}
    for name in sorted(named - parameters.keys()):
        yield f"The step {step.get('name')} names the parameter {name}, which the document does not have."
