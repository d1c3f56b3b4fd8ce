"""The interop cases with Python's grpcio: client.py ADDRESS. Prints one line a case; exits with 1
after a failure."""
import concurrent.futures
import sys
import threading

import grpc

import contract
import interop_pb2 as pb

TIMEOUT_S = 20


def output_request(*sizes, status=None):
    return pb.StreamingOutputRequest(
        responses=[pb.ResponseParameters(bytes=n) for n in sizes], status=status)


def status_of(act):
    """Runs `act`, which must fail, and returns its error."""
    try:
        act()
    except grpc.RpcError as e:
        return e
    raise AssertionError("it did not fail")


def empty_unary(channel):
    assert contract.stub(channel, "EmptyCall")(pb.Empty(), timeout=TIMEOUT_S) == pb.Empty()


def large_unary(channel):
    request = pb.SimpleRequest(response_bytes=contract.LARGE, payload=bytes(contract.LARGE))
    reply = contract.stub(channel, "UnaryCall")(request, timeout=TIMEOUT_S)
    assert reply.payload == bytes(contract.LARGE)


def too_large_answer(channel):
    """The response is larger than this client's own limit of 4 MiB."""
    request = pb.SimpleRequest(response_bytes=5 << 20)
    e = status_of(lambda: contract.stub(channel, "UnaryCall")(request, timeout=TIMEOUT_S))
    assert e.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def client_streaming(channel):
    sizes = [27182, 8, 1828, 45904, 0]
    requests = (pb.StreamingInputRequest(payload=bytes(n)) for n in sizes)
    reply = contract.stub(channel, "StreamingInputCall")(requests, timeout=TIMEOUT_S)
    assert (reply.payload_bytes, reply.messages) == (sum(sizes), len(sizes))


def empty_client_stream(channel):
    reply = contract.stub(channel, "StreamingInputCall")(iter(()), timeout=TIMEOUT_S)
    assert reply.messages == 0


def server_streaming(channel):
    call = contract.stub(channel, "StreamingOutputCall")(
        output_request(*contract.SIZES), timeout=TIMEOUT_S)
    assert [len(r.payload) for r in call] == contract.SIZES


def many_small_messages(channel):
    call = contract.stub(channel, "StreamingOutputCall")(
        output_request(*([1] * 20000)), timeout=TIMEOUT_S)
    assert sum(len(r.payload) for r in call) == 20000


def ping_pong(channel):
    turn = threading.Semaphore(1)

    def requests():
        for n in contract.SIZES:
            turn.acquire()
            yield output_request(n)

    call = contract.stub(channel, "FullDuplexCall")(requests(), timeout=TIMEOUT_S)
    got = []
    for reply in call:
        got.append(len(reply.payload))
        turn.release()
    assert got == contract.SIZES


def empty_stream(channel):
    assert list(contract.stub(channel, "FullDuplexCall")(iter(()), timeout=TIMEOUT_S)) == []


def status_code_and_message(channel):
    wanted = pb.WantedStatus(code=9, message=contract.WORDS)
    unary = contract.stub(channel, "UnaryCall")
    e = status_of(lambda: unary(pb.SimpleRequest(status=wanted), timeout=TIMEOUT_S))
    assert (e.code(), e.details()) == (grpc.StatusCode.FAILED_PRECONDITION, contract.WORDS)
    duplex = contract.stub(channel, "FullDuplexCall")
    e = status_of(lambda: list(duplex(iter([output_request(1, status=wanted)]), timeout=TIMEOUT_S)))
    assert (e.code(), e.details()) == (grpc.StatusCode.FAILED_PRECONDITION, contract.WORDS)


def status_with_details(channel):
    wanted = pb.WantedStatus(code=3, message="bad", details=True)
    unary = contract.stub(channel, "UnaryCall")
    e = status_of(lambda: unary(pb.SimpleRequest(status=wanted), timeout=TIMEOUT_S))
    details = dict(e.trailing_metadata())["grpc-status-details-bin"]
    assert b"INTEROP" in details and b"google.rpc.ErrorInfo" in details


def unimplemented(channel):
    e = status_of(
        lambda: contract.stub(channel, "UnimplementedCall")(pb.Empty(), timeout=TIMEOUT_S))
    assert e.code() == grpc.StatusCode.UNIMPLEMENTED
    gone = channel.unary_unary(contract.GONE, pb.Empty.SerializeToString, pb.Empty.FromString)
    e = status_of(lambda: gone(pb.Empty(), timeout=TIMEOUT_S))
    assert e.code() == grpc.StatusCode.UNIMPLEMENTED


def cancel_after_begin(channel):
    hold = threading.Event()

    def requests():
        hold.wait()
        return
        yield

    call = contract.stub(channel, "StreamingInputCall").future(requests(), timeout=TIMEOUT_S)
    call.cancel()
    hold.set()
    assert call.cancelled()


def cancel_after_first_response(channel):
    hold = threading.Event()

    def requests():
        yield output_request(31415)
        hold.wait()

    call = contract.stub(channel, "FullDuplexCall")(requests(), timeout=TIMEOUT_S)
    assert len(next(call).payload) == 31415
    call.cancel()
    hold.set()
    assert status_of(lambda: next(call)).code() == grpc.StatusCode.CANCELLED


def deadline(channel):
    hold = threading.Event()

    def requests():
        hold.wait()
        return
        yield

    call = contract.stub(channel, "FullDuplexCall")(requests(), timeout=0.02)
    assert status_of(lambda: next(call)).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    hold.set()


def custom_metadata(channel):
    metadata = (("x-interop-echo", "text"), ("x-interop-echo-bin", b"\xab\x00\xff"))
    reply, call = contract.stub(channel, "UnaryCall").with_call(
        pb.SimpleRequest(), metadata=metadata, timeout=TIMEOUT_S)
    assert dict(call.initial_metadata())["x-interop-echo"] == "text"
    assert dict(call.trailing_metadata())["x-interop-echo-bin"] == b"\xab\x00\xff"
    call = contract.stub(channel, "FullDuplexCall")(iter(()), metadata=metadata, timeout=TIMEOUT_S)
    assert list(call) == []
    assert dict(call.trailing_metadata())["x-interop-echo-bin"] == b"\xab\x00\xff"


def bad_request(channel):
    """The request is not a valid message."""
    raw = channel.unary_unary(contract.TEST + "UnaryCall")
    e = status_of(lambda: raw(b"\xff\xff\xff", timeout=TIMEOUT_S))
    assert e.code() != grpc.StatusCode.OK


def compressed(channel):
    request = pb.SimpleRequest(response_bytes=100000, payload=bytes(100000))
    reply = contract.stub(channel, "UnaryCall")(
        request, timeout=TIMEOUT_S, compression=grpc.Compression.Gzip)
    assert len(reply.payload) == 100000


def many_at_once(channel):
    unary = contract.stub(channel, "UnaryCall")

    def one(n):
        return len(unary(pb.SimpleRequest(response_bytes=n), timeout=TIMEOUT_S).payload)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(200))) == list(range(200))


def health(channel):
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert check(b"\x0a\x1cmillrace.interop.TestService", timeout=TIMEOUT_S) == b"\x08\x01"
    e = status_of(lambda: check(b"\x0a\x01x", timeout=TIMEOUT_S))
    assert e.code() == grpc.StatusCode.NOT_FOUND


CASES = [empty_unary, large_unary, too_large_answer, client_streaming, empty_client_stream,
         server_streaming, many_small_messages, ping_pong, empty_stream, status_code_and_message,
         status_with_details, unimplemented, cancel_after_begin, cancel_after_first_response,
         deadline, custom_metadata, bad_request, compressed, many_at_once, health]


def main():
    failed = 0
    with grpc.insecure_channel(sys.argv[1]) as channel:
        for case in CASES:
            try:
                case(channel)
                print("ok", case.__name__)
            except Exception as e:  # all cases are run, even after a failure
                failed += 1
                print("FAIL", case.__name__, repr(e))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
