/* Whether the page is light or dark: as the user chose, or else as the browser prefers. */

/** @returns {"light" | "dark"} */
export function theme() {
    const chosen = document.documentElement.dataset.theme;
    if (chosen === "light" || chosen === "dark") return chosen;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}
