// The interop cases with Node's grpc-js: node client.js ADDRESS PROTO. Prints one line a case;
// exits with 1 after a failure.
'use strict';
const assert = require('assert');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const LARGE = 3 << 20;
const SIZES = [31415, 0, 9, 2653, LARGE];
const WORDS = '\t\nwhitespace\r\nand \u263a and \u{1f608}\t\n';

const definition = loader.loadSync(process.argv[3], {keepCase: true, longs: Number, defaults: true});
const pkg = grpc.loadPackageDefinition(definition).millrace.interop;
const credentials = grpc.credentials.createInsecure();
const test = new pkg.TestService(process.argv[2], credentials);
const gone = new pkg.UnimplementedService(process.argv[2], credentials);

const withTimeout = () => ({deadline: Date.now() + 20000});
const outputs = (...sizes) => ({responses: sizes.map((bytes) => ({bytes}))});

function unary(client, method, request, metadata = new grpc.Metadata(), options = withTimeout()) {
  return new Promise((resolve, reject) => {
    const got = {};
    const call = client[method](request, metadata, options, (err, reply) => {
      if (err) reject(err);
      else got.reply = reply;
    });
    call.on('metadata', (m) => { got.initial = m; });
    call.on('status', (s) => { got.status = s; if (s.code === 0) setImmediate(resolve, got); });
  });
}

// Collects all messages of a call that answers with a stream, then its status.
function drain(call) {
  return new Promise((resolve) => {
    const got = {messages: [], error: null};
    call.on('data', (m) => got.messages.push(m));
    call.on('error', (e) => { got.error = e; });
    call.on('metadata', (m) => { got.initial = m; });
    call.on('status', (s) => { got.status = s; setImmediate(resolve, got); });
  });
}

async function fails(promise, code) {
  try {
    await promise;
  } catch (e) {
    assert.strictEqual(e.code, code, e.message);
    return e;
  }
  throw new Error('it did not fail');
}

const cases = {
  async empty_unary() {
    await unary(test, 'EmptyCall', {});
  },
  async large_unary() {
    const got = await unary(test, 'UnaryCall',
        {response_bytes: LARGE, payload: Buffer.alloc(LARGE)});
    assert.strictEqual(got.reply.payload.length, LARGE);
  },
  async client_streaming() {
    const reply = await new Promise((resolve, reject) => {
      const call = test.StreamingInputCall(new grpc.Metadata(), withTimeout(),
          (err, r) => err ? reject(err) : resolve(r));
      for (const n of [27182, 8, 1828, 45904, 0]) call.write({payload: Buffer.alloc(n)});
      call.end();
    });
    assert.strictEqual(reply.payload_bytes, 74922);
    assert.strictEqual(reply.messages, 5);
  },
  async server_streaming() {
    const got = await drain(
        test.StreamingOutputCall(outputs(...SIZES), new grpc.Metadata(), withTimeout()));
    assert.deepStrictEqual(got.messages.map((m) => m.payload.length), SIZES);
    assert.strictEqual(got.status.code, 0);
  },
  async ping_pong() {
    const call = test.FullDuplexCall(new grpc.Metadata(), withTimeout());
    let at = 0;
    call.on('data', (m) => {
      assert.strictEqual(m.payload.length, SIZES[at]);
      at += 1;
      if (at < SIZES.length) call.write(outputs(SIZES[at]));
      else call.end();
    });
    const end = drain(call);
    call.write(outputs(SIZES[0]));
    assert.strictEqual((await end).status.code, 0);
    assert.strictEqual(at, SIZES.length);
  },
  async empty_stream() {
    const call = test.FullDuplexCall(new grpc.Metadata(), withTimeout());
    call.end();
    const got = await drain(call);
    assert.strictEqual(got.messages.length, 0);
    assert.strictEqual(got.status.code, 0);
  },
  async status_code_and_message() {
    const e = await fails(unary(test, 'UnaryCall', {status: {code: 9, message: WORDS}}),
        grpc.status.FAILED_PRECONDITION);
    assert.strictEqual(e.details, WORDS);
  },
  async status_with_details() {
    const e = await fails(
        unary(test, 'UnaryCall', {status: {code: 3, message: 'bad', details: true}}),
        grpc.status.INVALID_ARGUMENT);
    assert(e.metadata.get('grpc-status-details-bin')[0].includes('INTEROP'));
  },
  async unimplemented() {
    await fails(unary(test, 'UnimplementedCall', {}), grpc.status.UNIMPLEMENTED);
    await fails(unary(gone, 'UnimplementedCall', {}), grpc.status.UNIMPLEMENTED);
  },
  async cancel_after_begin() {
    const call = test.FullDuplexCall(new grpc.Metadata(), withTimeout());
    const end = drain(call);
    call.cancel();
    assert.strictEqual((await end).status.code, grpc.status.CANCELLED);
  },
  async cancel_after_first_response() {
    const call = test.FullDuplexCall(new grpc.Metadata(), withTimeout());
    call.once('data', () => call.cancel());
    const end = drain(call);
    call.write(outputs(31415));
    assert.strictEqual((await end).status.code, grpc.status.CANCELLED);
  },
  async deadline() {
    const call = test.FullDuplexCall(new grpc.Metadata(), {deadline: Date.now() + 20});
    assert.strictEqual((await drain(call)).status.code, grpc.status.DEADLINE_EXCEEDED);
  },
  async custom_metadata() {
    const metadata = new grpc.Metadata();
    metadata.set('x-interop-echo', 'text');
    metadata.set('x-interop-echo-bin', Buffer.from([0xab, 0, 0xff]));
    const got = await unary(test, 'UnaryCall', {}, metadata);
    assert.strictEqual(got.initial.get('x-interop-echo')[0], 'text');
    assert.deepStrictEqual(
        [...got.status.metadata.get('x-interop-echo-bin')[0]], [0xab, 0, 0xff]);
  },
  async many_at_once() {
    const got = await Promise.all([...Array(200).keys()].map(
        (n) => unary(test, 'UnaryCall', {response_bytes: n})));
    got.forEach((g, n) => assert.strictEqual(g.reply.payload.length, n));
  },
};

(async () => {
  let failed = 0;
  for (const [name, run] of Object.entries(cases)) {
    try {
      await run();
      console.log('ok', name);
    } catch (e) {
      failed += 1;
      console.log('FAIL', name, e);
    }
  }
  process.exit(failed ? 1 : 0);
})();
