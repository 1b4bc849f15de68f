"""What an account may have: quotas, Lambda's concurrency and Spot placement scores; moto has VPC's quotas alone.

The account has been granted vCPUs, as one that trains has; its other quotas are AWS's defaults.
"""

import json
from collections.abc import Mapping
from typing import Any

from moto.core.responses import ActionResult
from moto.servicequotas.exceptions import NoSuchResource
from moto.servicequotas.resources.default_quotas.vpc import VPC_DEFAULT_QUOTAS

_GRANTED_VCPUS = 10_000
# https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html
_VCPUS = (
    *("L-1216C47A", "L-1945791B", "L-2C3B7624", "L-34B43A08", "L-3819A6DF", "L-417A185B", "L-43DA4232", "L-6B0D517C"),
    *("L-6E869C2A", "L-7212CCBC", "L-7295265B", "L-74FC7D96", "L-85EED4F7", "L-88CF9481", "L-B5D1601B", "L-C4BD4855"),
    *("L-DB2E81BA", "L-E3A00192", "L-F7808C92"),
)
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/limits.html
_LUSTRE = {
    **dict.fromkeys(("L-FD6F2F22", "L-9AFA1F09", "L-C48231E5"), 100),
    **dict.fromkeys(("L-8F1B9C74", "L-C8640C82", "L-AD2FC696", "L-0CD18A5D"), 100_800),
    "L-736F3D6F": 102_000,
}
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
_EXECUTIONS = 1000
_values: dict[tuple[str, str], float] = {
    **{("ec2", code): _GRANTED_VCPUS for code in _VCPUS},
    **{("fsx", code): value for code, value in _LUSTRE.items()},
    **{("vpc", str(each["QuotaCode"])): float(each["Value"]) for each in VPC_DEFAULT_QUOTAS},
    ("ec2", "L-0263D0A3"): 5,  # https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
    ("lambda", "L-B99A9384"): _EXECUTIONS,
}
# 1 to 10: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-sps-works.html
_SCORE = 9


def set_quota(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let AWS grant another value of a quota."""
    _values[str(request["service_code"]), str(request["quota_code"])] = float(request["value"])
    return {}


def get_service_quota(response: Any) -> str:
    """Answer GetServiceQuota."""
    asked = json.loads(response.body)
    key = str(asked.get("ServiceCode")), str(asked.get("QuotaCode"))
    if key not in _values:
        raise NoSuchResource
    return json.dumps({"Quota": {"ServiceCode": key[0], "QuotaCode": key[1], "Value": _values[key]}})


def get_aws_default_service_quota(response: Any) -> str:
    """Answer GetAWSDefaultServiceQuota: the account's own quotas are all that there is."""
    return get_service_quota(response)


def get_account_settings(response: Any) -> str:
    """Answer Lambda's GetAccountSettings."""
    functions = response.backend.list_functions()
    reserved = sum(int(each.reserved_concurrency or 0) for each in functions)
    total = int(_values["lambda", "L-B99A9384"])
    limit = {"ConcurrentExecutions": total, "UnreservedConcurrentExecutions": total - reserved}
    return json.dumps({"AccountLimit": limit, "AccountUsage": {"FunctionCount": len(functions)}})


def get_spot_placement_scores(response: Any) -> ActionResult:
    """Answer GetSpotPlacementScores: everything can be had, as a rule."""
    zones = response.ec2_backend.describe_availability_zones()
    scores = [{"Region": zone.region_name, "AvailabilityZoneId": zone.zone_id, "Score": _SCORE} for zone in zones]
    return ActionResult({"SpotPlacementScores": scores})
