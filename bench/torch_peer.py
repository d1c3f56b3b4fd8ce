#!/usr/bin/python3
"""The nets of bench/train.py in PyTorch, in this process: torch_peer.py DATA SECONDS ROUNDS CASE...
where CASE is NET:THREADS:BATCH[:LAYOUT]. Prints one JSON object, {CASE: {"rates": [images/s ...]}}.

All images are one tensor in memory, shuffled each epoch. A step gathers a batch, runs forward and backward passes and
applies Adam. Without a LAYOUT, the convolutional net runs in both layouts, and the faster one counts. DATA is a
directory of the MNIST IDX files. Without the files, random numbers are used, which does not change the speed."""
import gzip
import json
import pathlib
import statistics
import sys
import time

import torch


def idx(path):
    raw = gzip.open(path).read()
    shape = [int.from_bytes(raw[4 + 4 * i:8 + 4 * i], "big") for i in range(raw[3])]
    return torch.frombuffer(bytearray(raw[4 + 4 * raw[3]:]), dtype=torch.uint8).reshape(shape)


def load(data):
    folder = pathlib.Path(data)
    if (folder / "train-images-idx3-ubyte.gz").exists():
        return idx(folder / "train-images-idx3-ubyte.gz").float() / 255, idx(folder / "train-labels-idx1-ubyte.gz").long()
    return torch.rand(60000, 28, 28), torch.randint(0, 10, (60000,))


def make(net):
    if net == "dense":
        return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 100), torch.nn.ReLU(), torch.nn.Linear(100, 10))
    return torch.nn.Sequential(torch.nn.Conv2d(1, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(26 * 26 * 32, 128),
                               torch.nn.ReLU(), torch.nn.Linear(128, 10))


def rate(net, x, y, batch, seconds, layout):
    torch.manual_seed(1)
    model = make(net).to(memory_format=layout)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss_of = torch.nn.CrossEntropyLoss()
    order, at, done, begun = torch.randperm(len(x)), 0, 0, None
    warm = time.perf_counter() + min(1.0, seconds / 4)
    while True:
        if at + batch > len(x):
            order, at = torch.randperm(len(x)), 0
        rows = order[at:at + batch]
        at += batch
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(x.index_select(0, rows).contiguous(memory_format=layout)), y.index_select(0, rows))
        loss.backward()
        optimizer.step()
        now = time.perf_counter()
        if begun is None:
            if now >= warm:
                begun = now
            continue
        done += batch
        if now - begun >= seconds:
            return done / (now - begun)


def main():
    data, seconds, rounds, cases = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
    images, y = load(data)
    x = {"dense": images, "cnn": images[:, None]}
    out = {}
    for case in cases:
        net, threads, batch, *only = case.split(":")
        torch.set_num_threads(int(threads))
        layouts = {"contiguous": torch.contiguous_format}
        if net == "cnn":
            layouts["channels_last"] = torch.channels_last
        if only:
            layouts = {only[0]: layouts[only[0]]}
        best = None
        for name, layout in layouts.items():
            rates = [rate(net, x[net], y, int(batch), seconds, layout) for _ in range(rounds)]
            if best is None or statistics.median(rates) > statistics.median(best["rates"]):
                best = {"rates": rates, "layout": name}
        out[case] = best
    json.dump({"version": torch.__version__, "cases": out}, sys.stdout)


if __name__ == "__main__":
    main()
