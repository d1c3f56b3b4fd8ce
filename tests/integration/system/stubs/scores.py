"""Follows a channel through Python stubs until it is killed: scores.py TRAINER CHANNEL AFTER_ID.
Prints one JSON line an entry. When the stream breaks, it continues after the last entry."""
import json
import sys
import time

import grpc

from millrace.v1 import channels_pb2, channels_pb2_grpc


def main():
    trainer, channel, last = sys.argv[1:]
    stub = channels_pb2_grpc.ChannelsStub(grpc.insecure_channel(trainer, options=[("grpc.max_reconnect_backoff_ms", 500)]))
    while True:
        try:
            for entry in stub.Watch(channels_pb2.WatchChannelRequest(channel=channel, last_event_id=last)):
                last = entry.id
                print(json.dumps({"id": entry.id, "value_json": entry.value_json}), flush=True)
        except grpc.RpcError as e:
            if e.code() != grpc.StatusCode.UNAVAILABLE:
                raise
            print(f"resuming after {last or 'nothing'}: {e.details()}", file=sys.stderr, flush=True)
        time.sleep(0.1)


main()
