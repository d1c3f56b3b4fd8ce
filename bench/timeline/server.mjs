/* Serves the timeline's modules, a test page and the answers of a synthetic job. */
import fs from "node:fs";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { BEGIN_NS, Synthetic } from "./synthetic.mjs";

const HERE = path.dirname(fileURLToPath(import.meta.url));
const FOLDERS = { "/page/": path.join(HERE, "page"), "/timeline/": path.resolve(HERE, "../../dashboard/js/timeline") };
const TYPES = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml" };
// The rules of the dashboard's own pages.
const POLICY = "default-src 'self'; script-src 'self'; style-src 'self'";

/** @param {Synthetic} job @param {URL} url */
function answer(job, url) {
    const n = (/** @type {string} */ name) => Number(url.searchParams.get(name) ?? 0);
    const big = (/** @type {string} */ name) => BigInt(url.searchParams.get(name) ?? 0);
    const o = { fromNs: big("from_ns"), untilNs: big("until_ns"), firstRow: n("first_row"), rows: n("rows") };
    if (url.pathname === "/job")
        return { rowsCount: job.slots, beginNs: String(BEGIN_NS), endNs: String(BEGIN_NS + BigInt(job.extent)), path: job.path(n("path")) };
    if (url.pathname === "/tiles") return job.tiles({ ...o, width: n("width"), color: url.searchParams.get("color") ?? "op" });
    if (url.pathname === "/spans") return job.spans({ ...o, limit: n("limit") });
    return null;
}

/** @param {Synthetic} job @returns {Promise<{url: string, server: http.Server}>} */
export function serve(job) {
    const server = http.createServer((request, response) => {
        const url = new URL(request.url ?? "/", "http://localhost");
        const data = answer(job, url);
        if (data) {
            response.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-store" });
            response.end(JSON.stringify(data));
            return;
        }
        const folder = Object.entries(FOLDERS).find(([prefix]) => url.pathname.startsWith(prefix));
        const file = folder && path.join(folder[1], path.basename(url.pathname));
        if (!file || !fs.existsSync(file)) {
            response.writeHead(404).end();
            return;
        }
        response.writeHead(200, { "Content-Type": TYPES[path.extname(file)] ?? "text/plain", "Content-Security-Policy": POLICY });
        response.end(fs.readFileSync(file));
    });
    return new Promise((done) => server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        done({ url: `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`, server });
    }));
}
