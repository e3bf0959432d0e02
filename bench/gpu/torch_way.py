"""What one would do without the library: NCCL all-gather, torch.topk, gather; and the all-gather alone.

    torchrun --nproc-per-node=GPUS bench/gpu/torch_way.py [rows...]

Ids beyond the order of torch.topk among equal scores are not determined: compare times only. Prints
Markdown, microseconds, medians over replays of a captured train, of the slowest rank.
"""

import os
import sys

import torch
import torch.distributed as dist

TRAIN, REPLAYS, K, CANDIDATES = 20, 31, 2048, 2048


def measure(body):
    """The median over replays of the slowest rank's time, us per call."""
    for _ in range(3):
        body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(TRAIN):
            body()
    times = []
    for _ in range(REPLAYS):
        dist.barrier()
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / TRAIN)
    slowest = torch.tensor(times, device="cuda")
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return slowest.median().item()


def main():
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    if rank == 0:
        print(f"\ntorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}, {world} ranks\n")
        print("| rows | all-gather alone | all-gather, topk, gather |\n|---|---|---|")
    for rows in [int(a) for a in sys.argv[1:]] or [1, 2, 4, 8, 16, 64, 256]:
        torch.manual_seed(rank)
        # Scores and ids in one tensor, so that one all-gather moves both.
        own = torch.empty(2, rows, CANDIDATES, dtype=torch.float32, device="cuda")
        own[0].normal_()
        own[1] = torch.arange(CANDIDATES, dtype=torch.int32, device="cuda").view(torch.float32)
        everyone = torch.empty(world, 2, rows, CANDIDATES, dtype=torch.float32, device="cuda")

        def exchange():
            dist.all_gather_into_tensor(everyone, own)

        def whole():
            exchange()
            scores = everyone[:, 0].transpose(0, 1).reshape(rows, -1)
            ids = everyone[:, 1].transpose(0, 1).reshape(rows, -1).view(torch.int32)
            return ids.gather(1, scores.topk(K, sorted=True).indices)

        alone, all_of_it = measure(exchange), measure(whole)
        if rank == 0:
            print(f"| {rows} | {alone:.1f} | {all_of_it:.1f} |", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
