"""The page of messages: every sentence that a user or an operator can be shown.

It lists the alarms of the kept templates, and the texts in the source of the library, the cluster file, the command
and the functions, so that readers can search for a message that they have received.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

_LEAST_WORDS = 4
_WORD = re.compile(r"\b[a-zA-Z]{2,}\b")
# What has this in it is for programs: patterns, policies, addresses, metric expressions.
_FOR_PROGRAMS = re.compile(r"\\[sdw.]|\(\?|\w\|\w|https?://\S+$|^SELECT |^arn:|^#!|^AWS::|^Template Outputs")
# A text with none of these verbs that does not begin and end as a sentence is a name, a unit or a part of one.
_VERB = re.compile(
    r"\b(?:is|are|was|were|be|has|have|had|must|may|can|cannot|could|will|would|should|do|does|did|not|"
    r"(?:(?:re)?add|allow|answer|appl[yi]|ask|begin|belong|bill|bring|break|broke|buy|came|chang|choose|clos|compar|contain|"
    r"copi|correct|cost|count|cover|delet|deploy|describ|differ|draw|end|exceed|exclud|exist|expir|fail|fetch|find|"
    r"finish|follow|found|gave|get|giv|go|hold|import|indent|install|invok|join|keep|kept|know|lack|launch|leav|let|"
    r"link|list|look|low|made|mak|match|mend|mount|nam|need|notif|open|overlap|paid|pay|print|put|rais|ran|reach|"
    r"read|receiv|refus|remov|replac|report|requir|reserv|restor|resum|return|run|said|sav|say|see|sell|send|sent|set|"
    r"shar|show|skip|start|stat|stay|stop|take|took|terminat|use|verif|wait|want|went|work|writ)"
    r"(?:s|es|ed|d|n|en|e|y|ies)?)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[A-Z].*\.$", re.DOTALL)
# What a script on a node logs, or ends with.
_SHELL = re.compile(r'\b(?:log|die) "([^"]*)"')

_SECTIONS = (
    ("Synthesis: what the constructs refuse or warn of", "constructs/cdk_training_cluster"),
    ("Cluster files", "cluster_file/cdk_training_cluster_file"),
    ("Stacks", "stacks/cdk_training_cluster_stacks"),
    ("Kubernetes and HyperPod files", "manifests/cdk_training_cluster_manifests"),
    ("The command", "cli/cdk_training_cluster_cli"),
    ("Functions: messages, log entries and answers", "lambdas"),
    ("Jobs: `cluster-run` and `cluster_job`", "job/cluster_job"),
)


def page(project: Path) -> str:
    """Return the page.

    Args:
        project: The folder of the project.
    """
    parts = [
        "# Messages\n\nEvery sentence that this library can show: at synthesis, at the terminal, in an alarm, in a "
        "message of the alert topic or in a function's log. `{name}` stands for a value.",
        "## Alarms\n\n| alarm | description |\n|---|---|\n"
        + "\n".join(f"| {name} | {_escape(text)} |" for name, text in sorted(_alarms(project).items())),
    ]
    for title, folder in _SECTIONS:
        parts.append(f"## {title}")
        for path in sorted(path for path in (project / folder).rglob("*") if path.suffix in (".py", ".sh")):
            texts = list(dict.fromkeys(_sentences(path)))
            if texts:
                name = path.relative_to(project).as_posix()
                parts.append(f"### `{name}`\n\n" + "\n".join(f"- {_escape(text)}" for text in texts))
    return "\n\n".join(parts) + "\n"


def _alarms(project: Path) -> dict[str, str]:
    alarms = {}
    for path in sorted(project.glob("releases/*/*/*.template.json")):
        template = json.loads(path.read_text(encoding="utf-8"))
        for logical_id, resource in template["Resources"].items():
            if resource["Type"] == "AWS::CloudWatch::Alarm":
                text = _join(resource["Properties"]["AlarmDescription"])
                # The description begins with the name of the example's cluster.
                alarms[_short(logical_id)] = re.sub(r"^[^:]+:", "{cluster}:", text)
    return alarms


def _short(logical_id: str) -> str:
    """Return a logical id without the construct that it is in, and without its hash."""
    return re.sub(r"^TrainingCluster|[0-9A-F]{8}$", "", logical_id)


def _join(value: object) -> str:
    if isinstance(value, dict):
        (function, argument), *_ = value.items()
        if function == "Fn::Join":
            return "".join(map(_join, argument[1]))
        name = str(argument[0] if isinstance(argument, list) else argument)
        return f"{{{_short(name)}}}"
    return str(value)


def _sentences(path: Path) -> Iterator[str]:
    if path.suffix == ".sh":
        yield from _SHELL.findall(path.read_text(encoding="utf-8"))
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inner = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in node.values
        if isinstance(value, ast.Constant)
        for child in [value]
    }
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if id(node) in inner or id(node) in documentation:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        elif isinstance(node, ast.JoinedStr):
            text = "".join(_part(value) for value in node.values)
        else:
            continue
        plain = re.sub(r"{[^}]*}", "", text)
        says = bool(_VERB.search(plain) or _SENTENCE.match(text.strip()))
        if (
            says
            and " " in text.strip()
            and len(_WORD.findall(plain)) >= _LEAST_WORDS
            and not _FOR_PROGRAMS.search(text)
        ):
            yield " ".join(text.split())


def _part(value: ast.expr) -> str:
    return f"{{{_name(value.value)}}}" if isinstance(value, ast.FormattedValue) else str(ast.literal_eval(value))


def _name(node: ast.expr) -> str:
    """Return the word that says best what an expression yields."""
    inner: ast.expr | None = None
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.strip("_")
        case ast.Call(args=[first, *_]):
            inner = first
        case ast.Call(func=ast.Attribute(value=ast.Constant(), attr="join")):
            inner = None
        case ast.Call(func=value) | ast.IfExp(body=value) | ast.BoolOp(values=[value, *_]):
            inner = value
        case (
            ast.Subscript(value=value)
            | ast.GeneratorExp(elt=value)
            | ast.BinOp(left=value)
            | ast.Starred(value=value)
        ):
            inner = value
    return "value" if inner is None else _name(inner)


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
