"""Each row of the table of documented limits: what it takes and what it refuses, as the local AWS does."""

from collections.abc import Mapping, Sequence

import pytest

from aws_texts import REQUESTS, is_taken
from cdk_training_cluster.validation import LIMITS

_KEY = (["a", "a" * 128, "é_.:/=+-@ 1"], ["", "a" * 129, "aws:x", "AWS:x", "a*b", "a\nb"])
_VALUE = (["", "a" * 256, "aws:x é_.:/=+-@ 1"], ["a" * 257, "a,b", "it's", "a\tb"])
_ANY_KEY = (["a*'\"é", "a" * 128], ["", "a" * 129, "Aws:x"])
_ANY_VALUE = (["", "a*'\"é", "a" * 256], ["a" * 257])
_GROUP = "aZ09. _-:/()#,@[]+=&;{}!$*"
_FIFO = "a" * 5 + ".fifo"

# For each row: texts that AWS takes, and texts that differ from them by what it refuses.
_PLAIN_TAGS = ("iam", "lambda", "logs", "fsx", "parameter", "resourceGroups", "s3", "sns", "kms", "sagemaker")

CASES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    **{f"{service}TagKey": _KEY for service in _PLAIN_TAGS},
    **{f"{service}TagValue": _VALUE for service in _PLAIN_TAGS},
    "dynamodbTagKey": (["a", "a" * 128, "é_.:/=+- 1"], ["", "a" * 129, "aws:x", "a*b", "a@b"]),
    "dynamodbTagValue": (["", "a" * 256, "aws:x é_.:/=+- 1"], ["a" * 257, "a,b", "ana@example.com"]),
    "ssmTagKey": _KEY,
    "ssmTagValue": (_VALUE[0][1:], ["", *_VALUE[1]]),
    "sqsTagKey": _KEY,
    "sqsTagValue": (["", "a" * 256, "a aws:x é_.:/=+-@ 1"], ["a" * 257, "a,b", "aws:x", "AWS:x"]),
    **{f"{service}TagKey": _ANY_KEY for service in ("budgets", "cloudwatch", "events", "eks", "pcs")},
    **{f"{service}TagValue": _ANY_VALUE for service in ("budgets", "events", "ec2", "pcs")},
    "eksTagValue": (_ANY_VALUE[0], [*_ANY_VALUE[1], "aws:x", "AWS:x"]),
    "cloudwatchTagValue": (_ANY_VALUE[0][1:], ["", *_ANY_VALUE[1]]),
    "ec2TagKey": (["a*'\"é", "a" * 127], ["", "a" * 128, "Aws:x"]),
    "autoScalingTagKey": (["a*'\"é\U0001f600", "a" * 128], ["", "a" * 129, "aws:x", "a\x01"]),
    "autoScalingTagValue": (["", "a\t\n", "a" * 256], ["a" * 257, "a\x1f"]),
    "securityGroupText": ([_GROUP, "a" * 255], ["", "a" * 256, "it's", 'a"b', "a>b", "a%b", "a\nb", "é", "a?b"]),
    "securityGroupRuleText": (["", _GROUP.replace("&", ""), "a" * 255], ["a" * 256, "it's", "a&b"]),
    "securityGroupName": ([_GROUP, "a" * 255, "my-sg-1"], ["", "a" * 256, "it's", "sg-1"]),
    "placementGroupName": (["a'b ~", "a" * 255], ["", "a" * 256, "é", "a\nb"]),
    "launchTemplateName": (["a(b).-/_", "abc", "a" * 128], ["ab", "a" * 129, "a b c", "a:bc"]),
    "launchTemplateVersion": (["", "é" * 255], ["a" * 256]),
    "autoScalingGroupName": (["!a/b~", "a" * 255], ["", "a" * 256, "a b", "a:b", "é"]),
    "lifecycleHookName": (["a-B_/9", "a" * 255], ["", "a" * 256, "a b", "a.b"]),
    "roleName": (["a_+=,.@-9", "a" * 64], ["", "a" * 65, "a b", "é", "a/b"]),
    "policyName": (["a_+=,.@-9", "a" * 128], ["", "a" * 129, "a b", "a:b"]),
    "iamPath": (["/", "/a!/b/", f"/{'a' * 510}/"], ["", "a", "/a", "a/", "/a b/", f"/{'a' * 511}/"]),
    "roleDescription": (["", "it's é\t\n", "a" * 1000], ["a" * 1001, "a→b", "a\x7f", "\xa0"]),
    "alarmName": (["it's é:/", "a" * 255], ["", "a" * 256, "a\nb", "a\x7f"]),
    "alarmDescription": (["", "it's → \n", "é" * 1024], ["a" * 1025]),
    "metricNamespace": (["A/b c", "a" * 255], ["", "a" * 256, ":a", "é", "a\tb"]),
    "metricName": (["a b", "a" * 255], ["", "a" * 256]),
    "dimensionName": ([" a:", "a" * 255], ["", "a" * 256, ":a", "  ", "é", "a\nb"]),
    "dimensionValue": ([" :a", "a" * 1024], ["", "a" * 1025, "  ", "é", "a\nb"]),
    "metricId": (["aB_9", "a" * 255], ["", "a" * 256, "Ab", "9a", "a-b"]),
    "metricExpression": (["IF(a > 0, a, b)", "a" * 2048], ["", "a" * 2049]),
    "logGroupName": (["/aws/lambda/a-B_#.9", "a" * 512], ["", "a" * 513, "a b", "a:b", "aws/a"]),
    "topicName": (["aB-_9", "a" * 256, _FIFO], ["", "a" * 257, "a b", "a.b", "é"]),
    "topicDisplayName": (["", "it's", "a\tb", "a" * 100], ["a" * 101, "a\nb"]),
    "email": (
        ["a.b+c@mail.example.com", "ops@example.xn--p1ai"],
        ["me", "a@b", "a b@example.com", "@example.com", "a@example..com"],
    ),
    "queueName": (["aB-_9", "a" * 80, _FIFO], ["", "a" * 81, "a b", "a.b"]),
    "functionName": (["aB-_9", "a" * 64], ["", "a" * 65, "a b", "a.b"]),
    "functionAlias": (["aB-_9", "1a", "a" * 128], ["", "a" * 129, "a b", "a.b", "12"]),
    "functionDescription": (["", "it's → \n", "é" * 256], ["a" * 257]),
    "functionVariable": (["aB_9", "AWS_REGIONS"], ["", "a", "_a", "9a", "a-b", "AWS_REGION", "a" * 4097]),
    "functionVariableValue": (["", "it's → \n", "a" * 4093], ["a" * 4097, "é" * 2049]),
    "eventRuleName": (["aB.-_9", "a" * 64], ["", "a" * 65, "a b", "a/b"]),
    "eventRuleDescription": (["", "it's →", "é" * 512], ["a" * 513]),
    "eventTargetInput": (["{}", "a" * 8192], ["a" * 8193]),
    "scheduleName": (["aB.-_9", "a" * 64], ["", "a" * 65, "a b", "a/b"]),
    "scheduleDescription": (["", "it's →", "é" * 512], ["a" * 513]),
    "documentName": (["aB.-_9", "a" * 128], ["ab", "a" * 129, "a b c", "AWS-a", "amazon-a", "amzn-a"]),
    "parameterName": (
        ["/a/aws.b_-9", "a" * 950, "/a" * 15],
        ["", "a" * 951, "a/b", "a/", "/a" * 16, "a b", "aws.a", "/AWS/a", "ssm-a", "/ssm/a"],
    ),
    "parameterDescription": (["", "it's →", "é" * 1024], ["a" * 1025]),
    "standardParameterValue": (["a" * 4096], ["a" * 4097]),
    "parameterValue": (["{}", '{"a": "it\'s"}', "a" * 8192], ["", "a" * 8193, "{{a}}", "a {{ssm:b}} c"]),
    "bucketName": (
        ["abc", "a" * 63, "a.b-9", "my-sthree-a", "1.2.3", "s3alias"],
        [
            *("ab", "a" * 64, "aB3", "a_b", "-ab", "ab-", "a..b", "1.2.3.4", "xn--a", "sthree-a", "amzn-s3-demo-a"),
            *("a-s3alias", "a--ol-s3", "ab.mrap", "a--x-s3", "a--table-s3", "a-an"),
        ],
    ),
    "lifecycleRuleId": (["", "it's →", "a" * 255], ["a" * 256]),
    "fileSystemPath": (["/it's é", "/" + "a" * 4095], ["", "/" + "a" * 4096, "/a\nb"]),
    "dataRepositoryPath": (["s3://it's é", "s3://" + "a" * 4352], ["ab", "s3://" + "a" * 4353, "s3://a\rb"]),
    "resourceGroupName": (["aB.-_9", "a" * 128], ["", "a" * 129, "a b", "AWSa"]),
    "resourceGroupDescription": (["", "a B.-_9", "a" * 512], ["a" * 513, "it's", "a:b"]),
    "keyDescription": (["", "it's →", "a" * 8192], ["a" * 8193]),
    "templateDescription": (["", "it's →", "é" * 512], ["a" * 1025, "é" * 513]),
    "logicalId": (["aB9", "a" * 255], ["", "a" * 256, "a-b", "é"]),
    "outputDescription": (["", "it's →", "é" * 512], ["a" * 1025, "é" * 513]),
    "exportName": (["a:b-9", "a" * 255], ["", "a" * 256, "a.b", "a_b", "a/b"]),
    "templateParameterDescription": (["", "it's →", "a" * 4000], ["a" * 4001]),
}


def test_every_row_has_its_cases_and_its_request() -> None:
    assert CASES.keys() == LIMITS.keys() == REQUESTS.keys()


@pytest.mark.parametrize("row", CASES)
def test_a_row_takes_and_refuses_what_aws_does(row: str) -> None:
    legal, illegal = CASES[row]
    limit = LIMITS[row]
    assert {text: limit.mend((text,)) for text in legal} == dict.fromkeys(legal)
    assert [text for text in illegal if limit.mend((text,)) is None] == []
    assert [text for text in (*legal, *illegal) if is_taken(row, text) != (text in legal)] == []
    assert limit.source.startswith("https://")


@pytest.mark.parametrize("row", CASES)
def test_half_a_surrogate_pair_is_in_no_text(row: str) -> None:
    assert LIMITS[row].mend(("abc\ud800",)) == "take '\\ud800' out"


SENTENCES = [
    ("securityGroupName", ("it's",), 'take "\'" out'),
    ("roleName", ("a" * 66,), "shorten it by 2"),
    ("bucketName", ("a",), "lengthen it by 2"),
    ("roleName", ("",), "leave it out, or give one"),
    ("s3TagKey", ("AWS:a",), "'AWS:' at the start is reserved for AWS"),
    ("bucketName", ("a.mrap",), "'.mrap' at the end is reserved for AWS"),
    ("iamPath", ("a",), "write it in that form"),
    # What the deployment puts in is not known, what stands around it is.
    ("securityGroupText", ("it's", None), 'take "\'" out'),
    ("roleName", ("a" * 33, None, "a" * 32), "shorten it by 1"),
    ("roleName", ("a" * 32, None, "a" * 32), None),
    ("s3TagKey", (None, "aws:a"), None),
    ("s3TagKey", ("aws:", None), "'aws:' at the start is reserved for AWS"),
    ("bucketName", (None, ".mrap"), "'.mrap' at the end is reserved for AWS"),
    ("bucketName", (None, ".mrap", None), None),
    ("iamPath", ("a", None), None),
]


@pytest.mark.parametrize(("row", "pieces", "mend"), SENTENCES)
def test_the_sentence_says_how_to_mend_it(row: str, pieces: tuple[str | None, ...], mend: str | None) -> None:
    limit, given = LIMITS[row], "".join("…" if piece is None else piece for piece in pieces)
    shown = repr(given) if len(given) <= 60 else f"{given[:60]!r}… ({len(given)} characters)"
    wanted = None if mend is None else f"it must have {limit.allowed}, got {shown}: {mend}"
    assert limit.problem("it", pieces) == wanted
