"""A Ray cluster of two nodes on this machine, in a process of its own; for tests.

    python tests/ray_cluster.py

prints its address, kills the second node at each line it reads, and ends with its
input.
"""

import contextlib
import os
import pathlib
import subprocess
import sys

_CPUS = 1  # Of each node.


@contextlib.contextmanager
def running():
    """Starts the cluster; yields its address and what kills its second node."""
    # Without workers that start ahead, of which none would be used.
    settings = {"RAY_AUTH_MODE": "disabled", "RAY_prestart_worker_first_driver": "0"}
    process = subprocess.Popen(
        [sys.executable, str(pathlib.Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | settings,
        text=True,
    )

    def kill_a_node():
        process.stdin.write("kill\n")
        process.stdin.flush()
        assert process.stdout.readline().strip() == "killed"

    try:
        yield process.stdout.readline().strip(), kill_a_node
    finally:
        process.stdin.close()
        process.wait(timeout=60)


def main():
    """Runs the cluster until there is no more input."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": _CPUS,
            "include_dashboard": False,
            "include_log_monitor": False,
        },
    )
    other = cluster.add_node(num_cpus=_CPUS)
    print(cluster.address, flush=True)
    for _ in sys.stdin:
        cluster.remove_node(other, allow_graceful=False)
        print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
