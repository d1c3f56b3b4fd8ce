/* One training: its state, live curves of its scores, its roles and how they spend their time; stop. */
import { colorOf } from "../classes.js";
import { Curves } from "../curves.js";
import { h, morph, onFrame } from "../dom.js";
import { ago, bytes, count, decimal, duration, plain, rate } from "../format.js";
import { account } from "./job_time.js";
import { action, badge, errorBox, figure, isMissing, outcome, shown, stack, table, time } from "../parts.js";

/** @typedef {import("../../client/api.d.ts").Training} Training */
/** @typedef {import("../../client/api.d.ts").TrainingMember} Member */

const FINAL = new Set(["TRAINING_DONE", "TRAINING_FAILED"]);
/** What a role does with its time: name, field of the counters. */
const SHARES = /** @type {const} */ ([["compute", "compute_s"], ["feed", "feed_s"], ["pull", "pull_s"], ["push", "push_s"], ["wait", "wait_s"]]);

/** @param {Member} m */
function partsOf(m) {
    return SHARES.map(([name, field]) => ({ name, color: colorOf(name), value: Number(m.counters?.[field] ?? 0) || 0 }));
}

/**
 * @param {import("../main.js").Context} c
 * @returns {import("../main.js").Page}
 */
export function openTraining(c) {
    const id = c.route.path[1];
    c.title(id);
    const draw = onFrame(render);
    const { session } = c;
    /** @type {Training | undefined} */
    let training;
    /** @type {any} */
    let problem;
    /** @type {Curves | undefined} */
    let curves;
    /** @type {import("../parts.js").Said} */
    let said;
    const stop = new AbortController();

    const isOver = () => training !== undefined && FINAL.has(training.state);

    const profile = session.feed(async (api, signal) => {
        const begun = await api.trainings.get(id, { signal });
        return begun.started_ns ? api.trainings.profile(id, { signal, steps_max: 1 }) : null;
    }, draw, () => (isOver() ? undefined : 5000));

    async function follow() {
        problem = undefined;
        const { signal } = stop;
        try {
            training = await session.client.trainings.get(id, { signal });
            draw();
            for await (const { data } of session.watch((api, o) => api.trainings.watch(id, o), signal, { isState: true })) {
                if (!data?.training) continue;
                const { document_json } = /** @type {Training} */ (training);
                training = { ...data.training, document_json: data.training.document_json || document_json };
                draw();
            }
        } catch (e) {
            if (signal.aborted) return;
            problem = e;
            session.note(e);
            draw();
        }
    }

    function actions() {
        if (!training || isOver()) return null;
        const of = id;
        const say = (/** @type {import("../parts.js").Said} */ s) => {
            said = s;
            draw();
        };
        return h("div", { class: "row actions" },
            action({ session, of, role: "user", label: "Stop", sure: `Stop training ${id}? The model is saved as it is now.`, say, act: async () => {
                await session.client.trainings.stop(id, { reason: "stopped in the dashboard" });
                return "The training stops, and saves its model.";
            } }),
            action({ session, of, role: "user", label: "Abandon", isDanger: true, sure: `Abandon training ${id}? No model is saved.`, say, act: async () => {
                await session.client.trainings.stop(id, { reason: "abandoned in the dashboard", abandon: true });
                return "The training is abandoned.";
            } }));
    }

    /** @param {Training} t */
    function body(t) {
        const n = t.counters;
        const end = t.ended_ns || BigInt(Date.now()) * 1000000n;
        return [h("dl", { class: "figures", key: "figures" }, figure("Steps", count(n?.steps ?? 0n), `version ${count(t.version)}`), figure("Epoch", count(n?.epoch ?? 0n), `${count(n?.examples ?? 0n)} examples`),
            figure("Loss", decimal(n?.loss)), figure("Accuracy", decimal(n?.accuracy)), figure("Examples a second", t.ended_ns ? "–" : rate(Number(t.examples_per_s))),
            figure(t.ended_ns ? "Took" : "Runs since", duration(end - t.created_ns), t.ended_ns ? `ended ${ago(t.ended_ns)}` : null)),
        h("section", { class: "card", key: "curves" }, h("h2", {}, "Scores"), curves ? curves.show() : h("p", { class: "quiet" }, "The training has no channel for scores.")),
        h("section", { class: "card", key: "roles" }, h("h2", {}, "Roles"), h("p", { class: "quiet" }, "The bar shows how the role has spent its time: ", SHARES.map(([name]) => [h("i", { class: "swatch", style: { "background-color": colorOf(name) } }), `${name} `]).flat()),
            table({ label: "Roles of the training", rows: t.members, key: (m) => `${m.role}/${m.index}`, columns: [
                { title: "Role", cell: (m) => h("b", {}, `${m.role.slice(9).toLowerCase()} ${m.index}`) },
                { title: "State", cell: (m) => badge(m.state) },
                { title: "Time", cell: (m) => {
                    const parts = partsOf(m);
                    const whole = parts.reduce((sum, p) => sum + p.value, 0);
                    return whole ? stack(parts, whole, `${m.role.slice(9).toLowerCase()} ${m.index}`) : "";
                } },
                { title: "Computed", isNumber: true, cell: (m) => duration((Number(m.counters?.compute_s) || 0) * 1e9) },
                { title: "Waited", isNumber: true, cell: (m) => duration((Number(m.counters?.wait_s) || 0) * 1e9) },
                { title: "Steps", isNumber: true, cell: (m) => count(m.counters?.steps ?? 0n) },
                { title: "Stale", isNumber: true, cell: (m) => count(m.counters?.gradients_stale ?? 0n) },
                { title: "Node", isWide: true, cell: (m) => [m.node, h("div", { class: "quiet" }, m.address)] },
            ] })),
        isMissing(profile.error) ? null : h("section", { class: "card", key: "account" }, h("h2", {}, "Where the time of the roles went"), shown(profile, (p) => (p && Number(p.slot_ns) ? account(p, "role") : h("p", { class: "quiet" }, "The roles have not started.")))),
        h("section", { class: "card", key: "facts" }, h("h2", {}, "The training"), h("dl", { class: "facts" },
            h("dt", {}, "Started"), h("dd", {}, time(t.created_ns)), t.reason ? [h("dt", {}, "Reason of its end"), h("dd", {}, t.reason)] : null,
            t.model_object ? [h("dt", {}, "Model"), h("dd", {}, h("a", { href: session.client.objects.url(t.model_object), download: `${t.model_name || t.id}` }, t.model_name || t.model_object))] : null,
            t.checkpoint ? [h("dt", {}, "Latest checkpoint"), h("dd", {}, `version ${count(t.checkpoint.version)}, `, time(t.checkpoint.time_ns))] : null,
            t.restores ? [h("dt", {}, "Restored"), h("dd", {}, `${t.restores} times from a checkpoint`)] : null,
            n?.moved_bytes ? [h("dt", {}, "Data copied between nodes"), h("dd", {}, bytes(n.moved_bytes))] : null,
            t.graph_job ? [h("dt", {}, "Data is made by job"), h("dd", {}, h("a", { href: `#/jobs/${t.graph_job}` }, t.graph_job))] : null,
            t.role_job ? [h("dt", {}, "Roles run in job"), h("dd", {}, h("a", { href: `#/jobs/${t.role_job}` }, t.role_job))] : null,
            h("dt", {}, "Channel of scores"), h("dd", {}, h("a", { href: `#/channels/${encodeURIComponent(t.channel)}` }, t.channel))),
        t.document_json ? h("details", {}, h("summary", {}, "Description, as submitted"), h("pre", { class: "value", tabindex: "0" }, t.document_json)) : null)];
    }

    function render() {
        if (training?.channel && !curves) curves = new Curves(session, [{ name: training.name || id, channel: training.channel, isOver }], draw);
        if (training) c.title(training.name || id);
        morph(c.root, h("div", { class: "title", key: "title" }, h("h1", {}, training?.name || id, training?.name ? h("small", {}, id) : null), training ? badge(training.state) : null, actions()),
            outcome(said), problem ? errorBox(problem, follow) : null, training?.state === "TRAINING_FAILED" ? h("div", { class: "error", key: "failed" }, h("p", {}, h("strong", {}, training.reason || plain(training.state)))) : null,
            training ? body(training) : problem ? null : h("p", { class: "quiet loading" }, "Loading…"));
        curves?.attach(c.root);
    }

    follow();
    draw();
    return {
        close() {
            stop.abort();
            profile.close();
            curves?.close();
        },
        change: (route) => route.path[1] === id,
        retheme() {
            curves?.retheme();
            draw();
        },
    };
}
