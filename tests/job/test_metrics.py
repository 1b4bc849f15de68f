import json
from pathlib import Path

import cdk_training_cluster_stacks.plan
from cluster_job.metrics import peak_flops


def test_peaks_are_those_of_the_plan() -> None:
    peaks = json.loads((Path(cdk_training_cluster_stacks.plan.__file__).parent / "peaks.json").read_text())
    gpus = {name: found["tflops"] * 1e12 for name, found in peaks.items() if not name.startswith("Trainium")}

    assert {name: peak_flops(f"NVIDIA {name} 80GB") for name in gpus} == gpus
    assert peak_flops("NVIDIA L4") is None
