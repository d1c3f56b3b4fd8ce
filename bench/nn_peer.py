#!/usr/bin/python3
"""Compares a training step with PyTorch's, one thread each, in turns: nn_peer.py NN_BENCH [ROUNDS]. Networks, batch
and optimizer (Adam) are the same. Needs Debian's python3-torch. Prints images/s and the ratio."""
import os
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch  # noqa: E402
from torch import nn  # noqa: E402

BATCH = 64
NETS = {
    "cnn": (lambda: nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(26 * 26 * 32, 128), nn.ReLU(),
                                  nn.Linear(128, 10)), (1, 28, 28), 20),
    "mlp": (lambda: nn.Sequential(nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)), (784,), 500),
}


class Theirs:
    def __init__(self, make, shape):
        torch.manual_seed(1)
        self.net, self.loss = make(), nn.CrossEntropyLoss()
        self.adam = torch.optim.Adam(self.net.parameters())
        self.x = torch.rand((4096,) + shape) * (torch.rand((4096,) + shape) < 0.2)
        self.y = torch.randint(0, 10, (4096,))
        self.t = 0

    def steps(self, n):
        begun = time.perf_counter()
        for _ in range(n):
            at = self.t * BATCH % 4033
            self.t += 1
            self.adam.zero_grad()
            self.loss(self.net(self.x[at:at + BATCH]), self.y[at:at + BATCH]).backward()
            self.adam.step()
        return time.perf_counter() - begun


class Ours:
    def __init__(self, program, name):
        self.p = subprocess.Popen([program, name, str(BATCH)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def steps(self, n):
        self.p.stdin.write(f"{n}\n")
        self.p.stdin.flush()
        return float(self.p.stdout.readline()), float(self.p.stdout.readline())


def compare(program, name, rounds):
    make, shape, n = NETS[name]
    ours, theirs = Ours(program, name), Theirs(make, shape)
    ours.steps(n)
    theirs.steps(n)
    rows = []
    for _ in range(rounds):
        rows.append((*ours.steps(n), theirs.steps(n)))
    learn, adam, torch_s = (statistics.median(c) / n for c in zip(*rows))
    ratio = statistics.median(t / (a + b) for a, b, t in rows)
    print(f"{name}: {BATCH / (learn + adam):.0f} images/s (forward and backward {learn * 1e3:.2f} ms, Adam {adam * 1e3:.2f} ms), "
          f"PyTorch {torch.__version__} {BATCH / torch_s:.0f} images/s ({torch_s * 1e3:.2f} ms): {ratio:.2f} times as fast")


def main():
    torch.set_num_threads(1)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    for name in NETS:
        compare(sys.argv[1], name, rounds)


if __name__ == "__main__":
    main()
