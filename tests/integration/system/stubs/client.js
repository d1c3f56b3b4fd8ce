// The README's job through Node's grpc-js and proto-loader: node client.js SCHEDULER STORE PROTOS.
// Prints one line a case; exits with 1 after a failure.
'use strict';
const assert = require('assert');
const grpc = require('@grpc/grpc-js');
const loader = require('@grpc/proto-loader');

const GRAPH = '{"dsk": {"x": 1, "y": ["inc", "x"], "z": ["add", "x", "y"]}, "targets": ["z"]}';
const definition = loader.loadSync(['millrace/v1/jobs.proto', 'millrace/v1/objects.proto'],
    {includeDirs: [process.argv[4]], keepCase: true, longs: String, enums: String, defaults: true});
const v1 = grpc.loadPackageDefinition(definition).millrace.v1;
const insecure = grpc.credentials.createInsecure();
const jobs = new v1.Jobs(process.argv[2], insecure);
const store = new v1.Objects(process.argv[3], insecure);
const withTimeout = () => ({deadline: Date.now() + 60000});

function unary(client, method, request) {
  return new Promise((resolve, reject) => {
    client[method](request, withTimeout(), (err, reply) => err ? reject(err) : resolve(reply));
  });
}

function upload(client, method, ...messages) {
  return new Promise((resolve, reject) => {
    const call = client[method](new grpc.Metadata(), withTimeout(),
        (err, reply) => err ? reject(err) : resolve(reply));
    messages.forEach((m) => call.write(m));
    call.end();
  });
}

async function all(call) {
  const messages = [];
  for await (const m of call) messages.push(m);
  return messages;
}

const json = (text) => ({body: {content_type: 'application/json', data: Buffer.from(text)}});
const text = (bodies) => Buffer.concat(bodies.map((b) => b.data)).toString().trim();

async function fails(promise, code, word) {
  try {
    await promise;
  } catch (e) {
    assert.strictEqual(e.code, code, e.message);
    assert(e.details.includes(word), e.details);
    return;
  }
  throw new Error('it did not fail');
}

const cases = {
  async submit_follow_read() {
    const {id} = await upload(jobs, 'Submit', json(GRAPH.slice(0, 20)), json(GRAPH.slice(20)));
    const last = (await all(jobs.Watch({id}, withTimeout()))).pop();
    assert.strictEqual(last.job.state, 'JOB_DONE');
    assert(last.event_id);
    const items = await all(jobs.Results({id, key: ['z'], json: true}, withTimeout()));
    assert.deepStrictEqual(items.map((i) => [i.keys, i.json]), [[['z'], ['3']]]);
    assert.deepStrictEqual([...items[0].packs], [3]);
    const bodies = await all(jobs.Result({id, key: 'z'}, withTimeout()));
    assert.strictEqual(text(bodies), '3');
    assert.strictEqual(bodies[0].content_type, 'application/json');
  },
  async typed_graph() {
    const answer = await unary(jobs, 'SubmitGraph', {
      wait_s: 30,
      want_values: true,
      options: {name: 'typed', labels: {lang: 'node'}},
      tasks: [
        {key: 'x', value: {integer: 1}},
        {key: 'y', op: 'inc', args: [{ref: 'x'}]},
        {key: 'z', op: 'add', args: [{ref: 'x'}, {ref: 'y'}]},
      ],
      targets: ['z'],
    });
    assert.strictEqual(answer.job.state, 'JOB_DONE');
    assert.deepStrictEqual(answer.values.map((v) => [v.key, [...v.pack]]), [['z', [3]]]);
    const job = await unary(jobs, 'Get', {id: answer.id});
    assert.deepStrictEqual([job.name, {...job.labels}], ['typed', {lang: 'node'}]);
  },
  async errors_have_words() {
    const bad = '{"dsk": {"x": ["incc", 1]}, "targets": ["x"]}';
    await fails(upload(jobs, 'Submit', json(bad)), grpc.status.INVALID_ARGUMENT, 'incc');
    await fails(unary(jobs, 'Get', {id: 'j9-99'}), grpc.status.NOT_FOUND, 'j9-99');
  },
  async an_object_goes_up_and_down() {
    const {id} = await upload(store, 'Put', json('{"three": [3]}'));
    assert.deepStrictEqual(JSON.parse(text(await all(store.Get({id}, withTimeout())))), {three: [3]});
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
