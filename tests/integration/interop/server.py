"""TestService with Python's grpcio, for our client. Prints `listening PORT`; ends when its standard
input is closed."""
import concurrent.futures
import sys

import grpc

import contract
import interop_pb2 as pb

NAMES = grpc.StatusCode.__members__.values()


def any_of(type_url, value):
    def field(number, data):
        return bytes([number << 3 | 2, len(data)]) + data
    return field(1, type_url.encode()) + field(2, value)


def echo(context):
    metadata = dict(context.invocation_metadata())
    if "x-interop-echo" in metadata:
        context.send_initial_metadata((("x-interop-echo", metadata["x-interop-echo"]),))
    if "x-interop-echo-bin" in metadata:
        context.set_trailing_metadata((("x-interop-echo-bin", metadata["x-interop-echo-bin"]),))


def end_as_asked(context, wanted):
    if not wanted.code:
        return
    if wanted.details:
        info = any_of("type.googleapis.com/google.rpc.ErrorInfo",
                      b"\x0a\x07INTEROP\x12\x08millrace")
        message = wanted.message.encode()
        details = (bytes([8, wanted.code, 18, len(message)]) + message +
                   bytes([26, len(info)]) + info)
        context.set_trailing_metadata((("grpc-status-details-bin", details),))
    context.abort(next(c for c in NAMES if c.value[0] == wanted.code), wanted.message)


def empty_call(request, context):
    echo(context)
    return pb.Empty()


def unary_call(request, context):
    echo(context)
    end_as_asked(context, request.status)
    return pb.SimpleResponse(payload=bytes(request.response_bytes))


def responses(request, context):
    for r in request.responses:
        yield pb.StreamingOutputResponse(payload=bytes(r.bytes))
    end_as_asked(context, request.status)


def streaming_output_call(request, context):
    echo(context)
    yield from responses(request, context)


def streaming_input_call(requests, context):
    echo(context)
    sizes = [len(r.payload) for r in requests]
    return pb.StreamingInputResponse(payload_bytes=sum(sizes), messages=len(sizes))


def full_duplex_call(requests, context):
    echo(context)
    for request in requests:
        yield from responses(request, context)


SERVED = {"EmptyCall": empty_call, "UnaryCall": unary_call,
          "StreamingOutputCall": streaming_output_call, "StreamingInputCall": streaming_input_call,
          "FullDuplexCall": full_duplex_call}


def handler(name, function):
    request, response, client_streams, server_streams = contract.METHODS[name]
    kind = f"{'stream' if client_streams else 'unary'}_{'stream' if server_streams else 'unary'}"
    make = getattr(grpc, f"{kind}_rpc_method_handler")
    return make(function, request_deserializer=request.FromString,
                response_serializer=response.SerializeToString)


def main():
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(
        "millrace.interop.TestService", {n: handler(n, f) for n, f in SERVED.items()}),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print("listening", port, flush=True)
    sys.stdin.read()
    server.stop(None)


if __name__ == "__main__":
    main()
