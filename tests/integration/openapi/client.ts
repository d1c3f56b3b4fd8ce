// Uses a cluster through the types that openapi-typescript made and openapi-fetch: URL and NPY are the arguments.
// tsc checks it (strict), Node runs it.
import createClient from "openapi-fetch";
import { readFileSync } from "node:fs";
import type { components, paths } from "./api.js";

type Job = components["schemas"]["Job"];
type Graph = components["schemas"]["GraphDocument"];
type Entry = components["schemas"]["GraphEntry"];
type Status = components["schemas"]["Status"];

const [url, npyPath] = process.argv.slice(2) as [string, string];
const api = createClient<paths>({ baseUrl: url });

function same<T>(found: T, wanted: T): void {
  const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}

function must<T>(answer: { data?: T; error?: Status }): T {
  if (answer.data === undefined) throw new Error(answer.error?.message ?? "no data");
  return answer.data;
}

const bytesAsTheyAre = (body: unknown): BodyInit => body as BodyInit;

async function result(id: string, key: string): Promise<unknown> {
  const answer = await api.GET("/v1/jobs/{id}/results/{key}", { params: { path: { id, key } }, parseAs: "json" });
  return must(answer);
}

async function jobs(): Promise<Job> {
  const y: Entry = { op: "add", args: [{ ref: "x" }, 1], retries: 2, priority: -3 };
  const graph: Graph = {
    tasks: { x: { value: 20 }, y, z: { op: "mul", args: [{ ref: "y" }, 2] } },
    targets: ["z", "y"],
    name: "by typescript",
  };
  const made = must(
    await api.POST("/v1/jobs", {
      params: { query: { wait_s: 60 }, header: { "Idempotency-Key": "typescript-1" } },
      body: graph,
    }),
  );
  same(made.existed, false);
  const job: Job = must(await api.GET("/v1/jobs/{id}", { params: { path: { id: made.id }, query: { wait_s: 60 } } }));
  same(job.state, "JOB_DONE");
  const created: string = job.created_ns; // 64 bits are a text, and always there
  if (BigInt(created) <= 0n) throw new Error(created);
  same(await result(job.id, "z"), 42);
  const all = must(
    await api.GET("/v1/jobs/{id}/results", { params: { path: { id: job.id } }, headers: { Accept: "application/json" } }),
  );
  if (typeof all === "string" || !("results" in all)) throw new Error("results came as a stream");
  same(all.results["y"], 21);
  const events = must(
    await api.GET("/v1/jobs/{id}/events", { params: { path: { id: job.id } }, parseAs: "text" }),
  );
  if (typeof events !== "string" || !events.includes('"JOB_DONE"')) throw new Error("no event of the end");
  return job;
}

async function others(job: Job): Promise<void> {
  const loop: Graph = {
    tasks: { unused: { value: 1 } },
    repeat: {
      count: {
        max: 5,
        carry: { n: { value: 0 } },
        tasks: { m: { op: "inc", args: [{ ref: "n" }] } },
        next: { n: { ref: "m" } },
      },
    },
    targets: ["count.n"],
  };
  const looped = must(await api.POST("/v1/jobs", { params: { query: { wait_s: 60 } }, body: loop }));
  same(await result(looped.id, "count.n"), 5);

  const template: Graph = { params: { n: 1 }, tasks: { r: { op: "inc", args: ["${n}"] } }, targets: ["r"] };
  must(await api.POST("/v1/templates", { params: { query: { name: "typescript" } }, body: template }));
  const instance = must(
    await api.POST("/v1/templates/{name}:instantiate", {
      params: { path: { name: "typescript" }, query: { wait_s: 60 } },
      body: { params: { n: 9 } },
    }),
  );
  same(await result(instance.id, "r"), 10);

  const seen: string[] = [];
  for (let token = ""; ; ) {
    const page = must(await api.GET("/v1/jobs", { params: { query: { page_size: 2, page_token: token } } }));
    seen.push(...page.jobs.map((j) => j.id));
    token = page.next_page_token;
    if (!token) break;
  }
  if (!seen.includes(job.id) || seen.length < 3) throw new Error(seen.join());
}

async function objects(): Promise<void> {
  const data = new Uint8Array(70000).map((_, i) => i % 251);
  const info = must(
    await api.POST("/v1/objects", {
      params: { query: { name: "typescript/bytes" } },
      body: data as unknown as string,
      bodySerializer: bytesAsTheyAre,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  );
  const back = must(await api.GET("/v1/objects/{id}", { params: { path: { id: info.id } }, parseAs: "arrayBuffer" }));
  same(Array.from(new Uint8Array(back)), Array.from(data));
  const stat = await api.GET("/v1/objects/{id}/stat", { params: { path: { id: "name:typescript/bytes" } } });
  same(must(stat).id, info.id);

  const npy = new Uint8Array(readFileSync(npyPath));
  const array = must(
    await api.POST("/v1/objects", {
      params: { query: { format: "npy" } },
      body: npy as unknown as string,
      bodySerializer: bytesAsTheyAre,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  );
  same([array.kind, array.dtype, ...array.shape], ["tensor", "f64", "2", "3"]);
  const again = must(
    await api.GET("/v1/objects/{id}", {
      params: { path: { id: array.id }, query: { accept: "application/x-npy" } },
      parseAs: "arrayBuffer",
    }),
  );
  same(Array.from(new Uint8Array(again)), Array.from(npy));
}

async function errors(): Promise<void> {
  const missing = await api.GET("/v1/jobs/{id}", { params: { path: { id: "j1kq07ab-999" } } });
  const why: Status | undefined = missing.error;
  same([missing.response.status, why?.code], [404, 5]);
  const bad = await api.POST("/v1/jobs", { body: { dsk: { x: 1 }, priority: 101 } });
  if (bad.response.status !== 400 || !bad.error?.message.includes("priority")) throw new Error("400 without its reason");
}

const job = await jobs();
await others(job);
await objects();
await errors();
console.log("typescript: ok");
