/* Lets Node import modules of the pages, which expect the JavaScript client in dashboard/client. There
 * it lies only in an installation; the generated wide.js is not needed here. */
import { register } from "node:module";

const hooks = `export async function resolve(name, context, next) {
    if (name === "./wide.js") return { url: "data:text/javascript,export const WIDE = {};", shortCircuit: true };
    return next(name.replace("../client/", "../../clients/js/"), context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
