"""Two processes that train together: started by a test, met and left by a worker."""

import json
import os
import subprocess
import sys
import warnings


def run(worker, tmp_path):
    """Runs a worker in two processes and returns what each of them found."""
    # They meet in a file: a port that is free now may be taken when they come to it.
    meeting, out = tmp_path / "meeting", tmp_path / "out"
    ranks = [
        subprocess.Popen([sys.executable, worker.__file__, str(rank), "2", meeting, out])
        for rank in range(2)
    ]
    try:
        # Three imports of PyTorch at once take their time on a busy machine.
        assert [rank.wait(timeout=600) for rank in ranks] == [0, 0]
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    return [json.loads((tmp_path / f"out.{rank}").read_text()) for rank in range(2)]


def take_part(find):
    """The main program of a worker: joins the other rank and writes what ``find(rank, world)`` returns."""
    import torch

    rank, world, meeting, out = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=world
    )
    found = find(rank, world)
    with open(f"{out}.{rank}", "w") as file:
        json.dump(found, file)
    # The answer is on disk. What is left is to leave: by the front door the destructors of gloo's
    # threads run, which have been seen to abort the process ("terminate called without an active
    # exception") on a busy machine; and a rank that leaves early may break what the other is still
    # receiving. Neither is what is tested here, so the ranks wait for each other if they can, and go.
    try:
        torch.distributed.barrier()
    finally:
        os._exit(0)
