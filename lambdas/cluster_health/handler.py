"""The entry point of the health function."""

import os

from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.typing import LambdaContext

from cluster_common.metrics import CLUSTER_DIMENSION, emit_counts
from cluster_contract.health import REPORT_DETAIL_TYPE, NodeReport
from cluster_contract.health_settings import HealthFunctionSettings, HealthMetric

logger = Logger()


@logger.inject_lambda_context(clear_state=True)
def handler(event: dict[str, object], _context: LambdaContext) -> dict[str, object]:
    """Log what a node reports; nothing is changed."""
    settings = HealthFunctionSettings.from_environment(os.environ)
    logger.append_keys(cluster=settings.cluster)
    detail = event.get("detail")
    if event.get("detail-type") == REPORT_DETAIL_TYPE and isinstance(detail, dict):
        report = NodeReport.from_json(detail)
        logger.info("a node reported", extra={"instance_id": report.instance_id, "kind": report.kind.value})
    else:
        emit_counts({HealthMetric.EVALUATIONS: 1}, **{CLUSTER_DIMENSION: settings.cluster})
    return {}
