"""TestService of interop.proto for Python's grpcio: paths and (de)serializers, from the messages
that protoc generates. The stubs are written by hand, so no plug-in of protoc is needed."""
import interop_pb2 as pb

TEST = "/millrace.interop.TestService/"
GONE = "/millrace.interop.UnimplementedService/UnimplementedCall"
LARGE = 3 << 20
SIZES = [31415, 0, 9, 2653, LARGE]
WORDS = "\t\nwhitespace\r\nand \u263a and \U0001f608\t\n"

# name: (request, response, client streams, server streams)
METHODS = {
    "EmptyCall": (pb.Empty, pb.Empty, False, False),
    "UnaryCall": (pb.SimpleRequest, pb.SimpleResponse, False, False),
    "StreamingOutputCall": (pb.StreamingOutputRequest, pb.StreamingOutputResponse, False, True),
    "StreamingInputCall": (pb.StreamingInputRequest, pb.StreamingInputResponse, True, False),
    "FullDuplexCall": (pb.StreamingOutputRequest, pb.StreamingOutputResponse, True, True),
    "UnimplementedCall": (pb.Empty, pb.Empty, False, False),
}


def stub(channel, name):
    request, response, client_streams, server_streams = METHODS[name]
    kind = f"{'stream' if client_streams else 'unary'}_{'stream' if server_streams else 'unary'}"
    return getattr(channel, kind)(
        TEST + name,
        request_serializer=request.SerializeToString,
        response_deserializer=response.FromString)
