"""A program as a role of a training session, with the standard library alone. It checks what it was
told, connects to the other rank at MASTER_ADDR:MASTER_PORT, reports a score, and ends as MODE
says. On an error it exits with a sentence and status 9."""
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


def read_members():
    with open(os.environ["MILLRACE_MEMBERS"]) as f:
        return json.load(f)


def told():
    spec = json.loads(os.environ["TF_CONFIG"])
    workers = spec["cluster"]["worker"]
    check(spec["task"] == {"type": "worker", "index": rank}, f"TF_CONFIG: {spec}")
    check(len(workers) == world and len(set(workers)) == world, f"TF_CONFIG: {workers}")
    check(workers[0] == f"{here[0]}:{here[1]}", f"the first worker is at {workers[0]}, the master at {here}")
    check(os.environ["MILLRACE_ROLE"] == "worker" and os.environ["MILLRACE_INDEX"] == str(rank), "MILLRACE_ROLE, MILLRACE_INDEX")
    members = read_members()
    check(members["cluster"]["worker"] == workers, f"{os.environ['MILLRACE_MEMBERS']}: {members}")
    check(members["generation"] == int(os.environ["MILLRACE_GENERATION"]), f"MILLRACE_GENERATION: {members}")
    check(os.path.dirname(os.environ["MILLRACE_MEMBERS"]) == os.getcwd(), "MILLRACE_MEMBERS is not in the role's directory")
    check("MILLRACE_SECRET_FILE" not in os.environ, "the environment of the cluster's own came along")


def meet():
    """The sum over both ranks, which rank 0 computes."""
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


def has_been_told():
    """What programs of earlier attempts have written to the channel."""
    url = f"{os.environ['GATEWAY']}/v1/channels/{os.environ['MILLRACE_CHANNEL']}/entries"
    entries = json.load(urllib.request.urlopen(url, timeout=20)).get("entries", [])
    return [json.loads(e["value_json"]) for e in entries]


def again():
    """In the first attempt rank 1 waits to be killed, and rank 0 for rank 1's answer; the second
    attempt ends well."""
    is_second = bool(has_been_told())
    total = meet()
    check(total == world * (world + 1) // 2, f"the sum is {total}")
    tell({"rank": rank, "sum": total, "pid": os.getpid(), "life": 1 + is_second, "generation": read_members()["generation"]})
    if is_second:
        return
    if rank == 0 and os.environ["FRAGILE"] == "yes":
        with socket.create_server(here) as server:
            server.settimeout(20)
            check(server.accept()[0].recv(1), "rank 1 hung up")
    if rank == 1 and os.environ["FRAGILE"] == "yes":
        for _ in range(400):
            try:
                held = socket.create_connection(here, timeout=20)
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
    time.sleep(60)


def follow():
    """Rank 0 goes on, and reads from a file where the new rank 1 is."""
    mine = [s for s in has_been_told() if s["rank"] == rank]
    old = read_members()
    tell({"rank": rank, "pid": os.getpid(), "at": old["cluster"]["worker"][1]})
    if rank == 1:
        time.sleep(0 if mine else 60)
        return
    for _ in range(1200):
        now = read_members()
        if now["generation"] > old["generation"]:
            tell({"rank": rank, "pid": os.getpid(), "at": now["cluster"]["worker"][1]})
            return
        time.sleep(0.05)
    check(False, "nobody told of another rank 1")


def torch_rank():
    """Each rank trains a line on half of the points, with summed gradients; both end with the same
    line."""
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
elif mode == "again":
    again()
elif mode == "follow":
    follow()
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
