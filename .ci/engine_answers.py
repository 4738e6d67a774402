"""Does a container engine answer? Prints which and exits 0, or says why not and exits 1."""

from __future__ import annotations

import sys

import docker
from docker.errors import DockerException
from requests.exceptions import RequestException

from harness.environment import docker_host


def main() -> int:
    """The exit status."""
    try:
        api = docker.APIClient(base_url=docker_host(), version="auto", timeout=10)
        facts = api.version()
    except (DockerException, RequestException, OSError) as error:
        sys.stderr.write(f"   no container engine answers: {error}\n")
        return 1
    sys.stdout.write(f"   container engine: {facts['Version']} at {docker_host() or 'its default socket'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
