"""What a rehearsal does with the data: data sets are hydrated, a checkpoint is restored, and nothing is lost."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster_contract.hydration import HydrationFunctionSettings
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal.checkpoint_run import exported_place, show_checkpoint, tell_checkpoint_story
from rehearsal.contents import files_below, objects_below
from rehearsal.hydration_run import NodePrograms, show_hydration, tell_hydration_story
from rehearsal.hydration_story import Contents, lost
from rehearsal.outcome import Findings

Functions = Mapping[str, tuple[DeployedFunction, Mapping[str, Any]]]
Step = Callable[[str], AbstractContextManager[None]]


@dataclass(kw_only=True)
class StorageRun:
    """Tells the stories of a deployed cluster's data.

    Attributes:
        aws: The local AWS.
        cluster: The cluster's name.
        mount_point: Where nodes mount the file system.
        console: Where tables are shown.
        findings: Where results and differences are collected.
        step: Shows one step.
        workspace: A directory for what nodes have, and for what is restored.
    """

    aws: LocalAws
    cluster: str
    mount_point: str
    console: Console
    findings: Findings
    step: Step
    workspace: Path
    _kept: dict[str, Contents] = field(default_factory=dict)

    def tell(self, found: Mapping[str, Any], functions: Functions) -> None:
        """Hydrate data sets and restore a checkpoint, as far as the cluster has them, and remember what there is.

        Args:
            found: What was read back.
            functions: The deployed functions and their configurations, by their packages.
        """
        if found["file_system"] is None:
            return
        if "cluster_hydration" in functions:
            self._hydrate(*functions["cluster_hydration"], found)
        self._restore_checkpoint(functions, found["file_system"]["id"])
        self._kept = self._contents(found)

    def tell_what_is_lost(self, found: Mapping[str, Any]) -> None:
        """Compare what was remembered with what is left when both stacks are gone.

        Args:
            found: What was read back while the cluster was deployed.
        """
        if self._kept:
            left = self._contents(found)
            self.findings.differences.extend(lost(self._kept, left))
            counts = {place: len(contents) for place, contents in left.items()}
            self.findings.results["contents_left"] = counts
            told = ", ".join(f"{count} in {place}" for place, count in counts.items())
            self.console.print(f"Files and objects that are left: {told}.", soft_wrap=True)

    def _hydrate(
        self, function: DeployedFunction, configuration: Mapping[str, Any], found: Mapping[str, Any]
    ) -> None:
        settings = HydrationFunctionSettings.from_environment(
            {
                **configuration["Environment"]["Variables"],
                "AWS_REGION": self.aws.region,
                "AWS_LAMBDA_FUNCTION_NAME": "",
            }
        )
        if not any(one.preload for one in settings.datasets):
            return
        with self.step(
            "Run the deployed hydration function, and the program that it has nodes run, until all is there"
        ):
            programs = NodePrograms(self.aws, self.workspace)
            story = tell_hydration_story(self.aws, function, settings, found["datasets"], programs)
        show_hydration(self.console, story)
        self.findings.differences.extend(story.differences())
        self.findings.results["hydration"] = story.results()

    def _restore_checkpoint(self, functions: Functions, file_system: str) -> None:
        if "cluster_checkpoints" not in functions:
            return
        watch, _ = functions["cluster_checkpoints"]
        place = exported_place(self.aws, self.cluster)
        if place is None:
            with self.step("Run the deployed checkpoint function"):
                self.findings.results["checkpoint"] = {"said": watch({"action": "tick"})}
            return
        with self.step(
            f"Write a checkpoint to {place.directory}, and restore it: training-cluster checkpoints restore"
        ):
            story = tell_checkpoint_story(
                self.aws,
                place,
                file_system=file_system,
                mount_point=self.mount_point,
                watch=lambda: dict(watch({"action": "tick"})),
                workspace=self.workspace,
            )
        show_checkpoint(self.console, place, story)
        self.findings.differences.extend(story.differences())
        self.findings.results["checkpoint"] = story.results()

    def _contents(self, found: Mapping[str, Any]) -> dict[str, Contents]:
        """Return what lies in the file system, and behind each of its links."""
        file_system = found["file_system"]["id"]
        addresses = [link["data_repository_path"] for link in found["datasets"]]
        return {
            file_system: files_below(self.aws.file_system_directory(file_system) / "files"),
            **{address: objects_below(self.aws.client, address) for address in addresses},
        }
