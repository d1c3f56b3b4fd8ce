#!/usr/bin/env python3
"""Reads a Perfetto trace with the message types that Perfetto publishes, and checks it as the trace
processor reads it: names are interned before they are used, slices of a track are nested, both ends
of a flow are there, and tracks are described. Prints what it found as JSON.

perfetto_read.py FILE, with the packages of PACKAGES."""
import collections
import json
import sys

PACKAGES = ["perfetto==0.59.1", "protobuf==7.36.2"]


def must(right, *what):
    if not right:
        sys.exit("perfetto: " + " ".join(str(w) for w in what))


def tracks_of(packets):
    tracks = {}
    for p in packets:
        if p.HasField("track_descriptor"):
            d = p.track_descriptor
            must(d.uuid not in tracks, "two tracks have the number", d.uuid)
            must(not d.HasField("parent_uuid") or d.parent_uuid in tracks, "a track without its parent", d)
            tracks[d.uuid] = d
    pids = [d.process.pid for d in tracks.values() if d.HasField("process")]
    tids = [d.thread.tid for d in tracks.values() if d.HasField("thread")]
    must(len(set(pids + tids)) == len(pids + tids), "two processes or threads have the same number")
    for d in tracks.values():
        must(not d.HasField("thread") or d.thread.pid in pids, "a thread without its process", d)
    return tracks


class Names:
    """The names that the packets so far have interned."""

    def __init__(self):
        self.events, self.categories, self.notes = {}, {}, {}

    def take(self, data):
        for to, rows in ((self.events, data.event_names), (self.categories, data.event_categories),
                         (self.notes, data.debug_annotation_names)):
            for row in rows:
                must(row.iid and row.iid not in to, "a name is interned twice:", row)
                to[row.iid] = row.name


def slice_of(event, time, names):
    notes = {names.notes[a.name_iid]: a.string_value if a.HasField("string_value") else a.uint_value
             for a in event.debug_annotations}
    must([names.categories[c] for c in event.category_iids] == ["task"], "a slice has no category", event)
    return {"name": names.events[event.name_iid], "begin": time, **notes}


def read(trace):
    packets = list(trace.packet)
    must(packets[0].first_packet_on_sequence and packets[0].sequence_flags == 1, "the first packet does not begin the state")
    must(all(p.trusted_packet_sequence_id == 1 for p in packets), "a packet has no sequence")
    must(all(p.sequence_flags == 2 for p in packets[1:]), "a packet does not need the state")
    tracks, names, stacks = tracks_of(packets), Names(), collections.defaultdict(list)
    slices, starts, ends, curves, events = [], {}, {}, collections.defaultdict(list), []
    # Names are interned in the order of the file; events take effect in the order of their times.
    for p in packets:
        names.take(p.interned_data)
        if p.HasField("track_event"):
            must(p.timestamp and p.track_event.track_uuid in tracks, "an event without time or track", p)
            e = p.track_event
            must(e.type != e.TYPE_SLICE_BEGIN or e.name_iid in names.events, "a slice without a name", p)
            events.append((p.timestamp, len(events), e))
    for time, _, e in sorted(events, key=lambda row: row[:2]):
        track = tracks[e.track_uuid]
        if e.type == e.TYPE_SLICE_BEGIN:
            s = dict(slice_of(e, time, names), slot=track.thread.thread_name, worker=tracks[track.parent_uuid].process.process_name)
            must(not stacks[track.uuid], "slices of a track overlap", e)
            stacks[track.uuid].append(s)
            for flow in e.flow_ids:
                must(flow not in starts, "a flow begins twice", e)
                starts[flow] = s
            for flow in e.terminating_flow_ids:
                must(flow not in ends, "a flow ends twice", e)
                ends[flow] = s
        elif e.type == e.TYPE_SLICE_END:
            must(stacks[track.uuid], "a slice ends that has not begun", e)
            s = stacks[track.uuid].pop()
            slices.append(dict(s, end=time))
            s["end"] = time
        else:
            must(e.type == e.TYPE_COUNTER and track.HasField("counter"), "an unknown event", e)
            must(e.double_counter_value >= 0, "a curve is negative", e)
            curves[track.name].append((time, e.double_counter_value))
    must(not any(stacks.values()), "a slice has no end")
    must(set(ends) <= set(starts), "a flow has no beginning")
    must(all(starts[f]["end"] <= ends[f]["begin"] for f in ends), "a flow goes back in time")
    return {"slices": slices, "curves": curves, "open_flows": len(set(starts) - set(ends)),
            "flows": [[starts[f]["key"], ends[f]["key"]] for f in ends]}


def main():
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    trace = perfetto_trace_pb2.Trace()
    with open(sys.argv[1], "rb") as f:
        data = f.read()
    trace.ParseFromString(data)
    trace.DiscardUnknownFields()
    must(trace.ByteSize() == len(data), "the file has fields that Perfetto does not know")
    json.dump(read(trace), sys.stdout)


if __name__ == "__main__":
    main()
