"""
A job by Harbor itself, whose trials run in folders of this machine and end in every way. Run by the interpreter that has
harbor: `harbor_jobs.py FOLDER`. Prints what Harbor says of each trial, as JSON.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from harbor.agents.base import BaseAgent
from harbor.agents.installed.base import NonZeroAgentExitCodeError
from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities
from harbor.job import Job
from harbor.models.job.config import JobConfig
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig
from harbor.models.trial.result import TrialResult

TASKS = {
    "solved": ("", "echo 1 > logs/verifier/reward.txt"),
    "failed": ("", "echo 0 > logs/verifier/reward.txt"),
    "slow": ("sleep", "echo 1 > logs/verifier/reward.txt"),
    "broken": ("raise", "echo 0 > logs/verifier/reward.txt"),
    "inner": ("timeout", "echo 0 > logs/verifier/reward.txt"),
    "exits": ("exit", "echo 0 > logs/verifier/reward.txt"),
    "silent": ("", "true"),
    "badimage": ("", "echo 1 > logs/verifier/reward.txt"),
}


class HostEnvironment(BaseEnvironment):
    """A folder of this machine that stands for a container."""

    @staticmethod
    def type():
        """Its name."""
        return "host"

    @property
    def capabilities(self):
        """Nothing special."""
        return EnvironmentCapabilities()

    def _validate_definition(self):
        pass

    def _at(self, path):
        return Path(self.root) / str(path).lstrip("/")

    async def start(self, force_build):
        """Make the folder; or fail as an image does."""
        if "badimage" in self.environment_name:
            raise RuntimeError("the image did not build")
        self.root = tempfile.mkdtemp()
        for name in ("logs/agent", "logs/verifier", "logs/artifacts", "tests"):
            self._at(name).mkdir(parents=True)

    async def stop(self, delete):
        """Remove it."""
        shutil.rmtree(getattr(self, "root", "/nowhere"), ignore_errors=True)

    async def upload_file(self, source_path, target_path):
        """Copy in."""
        shutil.copy(source_path, self._at(target_path))

    async def upload_dir(self, source_dir, target_dir):
        """Copy in."""
        shutil.copytree(source_dir, self._at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path, target_path):
        """Copy out."""
        shutil.copy(self._at(source_path), target_path)

    async def download_dir(self, source_dir, target_dir):
        """Copy out."""
        shutil.copytree(self._at(source_dir), target_dir, dirs_exist_ok=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None, **_):
        """Run a command with the container's folders in place of this machine's."""
        for name in ("/logs", "/tests"):
            command = command.replace(name, f"{self.root}{name}")
        process = await asyncio.create_subprocess_shell(
            command, cwd=self.root, env={**os.environ, **(env or {})}, stdout=-1, stderr=-1
        )
        out, err = await process.communicate()
        return ExecResult(stdout=out.decode(), stderr=err.decode(), return_code=process.returncode)


class Agent(BaseAgent):
    """Does what its instruction says."""

    @staticmethod
    def name():
        """Its name, with the mark that Harbor joins names by."""
        return "an__agent"

    def version(self):
        """Its version."""
        return "1"

    async def setup(self, environment):
        """Nothing to do."""

    async def run(self, instruction, environment, context):
        """Spend, then end in a way."""
        context.n_input_tokens, context.n_output_tokens, context.cost_usd = 100, 20, 0.25
        match instruction.strip():
            case "sleep":
                await asyncio.sleep(60)
            case "raise":
                raise RuntimeError("planted")
            case "timeout":
                raise TimeoutError("of its own")
            case "exit":
                raise NonZeroAgentExitCodeError("exit status 1")


def make_task(folder, name, instruction, script):
    """A task folder in Harbor's form."""
    for part in ("environment", "tests"):
        (folder / name / part).mkdir(parents=True)
    (folder / name / "environment" / "Dockerfile").write_text("FROM scratch\n")
    (folder / name / "instruction.md").write_text(instruction or "do it")
    toml = (
        f'schema_version = "1.4"\n[task]\nname = "made/{name}"\n[agent]\ntimeout_sec = {2 if name == "slow" else 30}\n'
    )
    (folder / name / "task.toml").write_text(toml)
    test = folder / name / "tests" / "test.sh"
    test.write_text(f"#!/bin/bash\n{script}\n")
    test.chmod(0o755)


async def main(folder):
    """Make the job."""
    for name, (instruction, script) in TASKS.items():
        make_task(folder / "tasks", name, instruction, script)
    config = JobConfig(
        job_name="job",
        jobs_dir=folder,
        n_attempts=2,
        n_concurrent_trials=8,
        quiet=True,
        agents=[AgentConfig(import_path=f"{Path(__file__).stem}:Agent", model_name="made/m")],
        environment=EnvironmentConfig(import_path=f"{Path(__file__).stem}:HostEnvironment"),
        tasks=[TaskConfig(path=path) for path in sorted((folder / "tasks").iterdir())],
    )
    await (await Job.create(config)).run()
    told = {}
    for path in (folder / "job").glob("*/result.json"):
        trial = TrialResult.model_validate_json(path.read_text())
        rewards = trial.verifier_result.rewards if trial.verifier_result else None
        exceptions = [each.exception_type for each in trial.recorded_exceptions()]
        told[trial.trial_name] = {"rewards": rewards, "exceptions": exceptions, "valid": trial.reward_valid}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
