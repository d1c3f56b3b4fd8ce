/* The page's comparison of two jobs as the document that `millrace compare --json` prints:
 * node compare.mjs DASHBOARD URL BEFORE AFTER. */
const [dashboard, url, before, after] = process.argv.slice(2);
const { Client } = await import(`${dashboard}/client/millrace.js`);
const { MEASURES, changeOf, compare, sumUp } = await import(`${dashboard}/js/compare.js`);
const { jobs } = new Client({ url });
const profiles = await Promise.all([before, after].map((id) => jobs.profile(id, { steps_max: 100000 })));
const c = compare(...profiles);
const change = (r, unit) => ({ [`before${unit}`]: String(r.before), [`after${unit}`]: String(r.after), [`change${unit}`]: String(changeOf(r)) });
const head = (job, p) => ({ job, wall_ns: String(p.wall_ns), slots: String(p.slots), slot_ns: String(p.slot_ns) });
console.log(JSON.stringify({
    before: head(before, c.before), after: head(after, c.after), has_critical_path: c.hasPath,
    causes: c.causes.map((r) => ({ class: r.class, op: r.op, ...change(r, "_ns") })),
    classes: c.classes.map((r) => ({ class: r.class, ...change(r, "_ns") })),
    ops: c.ops.map((o) => ({ op: o.op, ...Object.fromEntries(MEASURES.map((m) => [m, change(o.measures[m], "")])) })),
    summary: sumUp(c, before, after),
}));
