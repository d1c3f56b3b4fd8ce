"""A foreign role of a training session, of the standard library alone: checks what it was told, meets the other rank at
MASTER_ADDR:MASTER_PORT, tells a score, and ends as MODE says. What is wrong ends it with a sentence and status 9."""
import json
import os
import socket
import sys
import time
import urllib.request

mode = os.environ["MODE"]
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
here = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def check(right, what):
    if not right:
        print(what, file=sys.stderr)
        sys.exit(9)


def told():
    spec = json.loads(os.environ["TF_CONFIG"])
    workers = spec["cluster"]["worker"]
    check(spec["task"] == {"type": "worker", "index": rank}, f"TF_CONFIG: {spec}")
    check(len(workers) == world and len(set(workers)) == world, f"TF_CONFIG: {workers}")
    check(workers[0] == f"{here[0]}:{here[1]}", f"the first worker is at {workers[0]}, the master at {here}")
    check(os.environ["MILLRACE_ROLE"] == "worker" and os.environ["MILLRACE_INDEX"] == str(rank), "MILLRACE_ROLE, MILLRACE_INDEX")
    check("MILLRACE_SECRET_FILE" not in os.environ, "the environment of the cluster's own came along")


def meet():
    """A sum over the ranks, made by rank 0."""
    if rank == 0:
        total, peers = 1, []
        with socket.create_server(here) as server:
            server.settimeout(20)
            while len(peers) < world - 1:
                peers.append(server.accept()[0])
            total += sum(int(p.recv(16)) for p in peers)
            for p in peers:
                p.sendall(b"%d" % total)
                p.close()
        return total
    for _ in range(400):
        try:
            with socket.create_connection(here, timeout=20) as c:
                c.sendall(b"%d" % (rank + 1))
                return int(c.recv(16))
        except ConnectionRefusedError:
            time.sleep(0.05)
    check(False, f"nobody listens at {here}")


def tell(score):
    url = f"{os.environ['GATEWAY']}/v1/channels/{os.environ['MILLRACE_CHANNEL']}:append"
    body = json.dumps({"value_json": [json.dumps(score)]}).encode()
    urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"}), timeout=20).read()


def torch_rank():
    """Both ranks train one line on halves of the points, with gradients that are summed: they end up alike."""
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo")
    torch.manual_seed(rank)
    w = torch.zeros(2, requires_grad=True)
    for _ in range(200):
        x = torch.rand(32)
        loss = ((w[0] * x + w[1] - (3 * x - 1)) ** 2).mean()
        (grad,) = torch.autograd.grad(loss, w)
        dist.all_reduce(grad)
        with torch.no_grad():
            w -= 0.2 * grad / world
    check(abs(w[0].item() - 3) < 0.1 and abs(w[1].item() + 1) < 0.1, f"it learned {w}")
    dist.destroy_process_group()
    return loss.item()


told()
if mode == "torch":
    loss = torch_rank()
    if rank == 0:
        tell({"step": 200, "loss": loss})
elif mode == "sleep":
    tell({"step": 0, "rank": rank, "pid": os.getpid()})
    time.sleep(float(os.environ["SECONDS"]))
else:
    total = meet()
    check(total == world * (world + 1) // 2, f"the sum is {total}")
    tell({"step": 1, "rank": rank, "sum": total, "port": here[1]})
    if mode == "fail" and rank == 1:
        print("a" * 2000 + "\nthe disk of rank 1 is full of cats", file=sys.stderr)
        sys.exit(3)
    if mode == "fail":
        time.sleep(60)
