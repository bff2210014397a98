// A headless Chromium that can reach this machine alone, and what is looked for on any page.

import { existsSync } from "node:fs";

export const CHROMIUM = ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find(existsSync);
const FLAGS =
  "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update " +
  "--disable-sync --disable-dev-shm-usage --proxy-server=127.0.0.1:9"; // only this machine can be reached
export const AXE = new URL("node_modules/axe-core/axe.min.js", import.meta.url);

export async function launch() {
  const { chromium } = await import("playwright-core");
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS.split(" ") });
}

// The functions below run in the page.

export async function axeFaults(rules) {
  const { violations } = await axe.run(document, { resultTypes: ["violations"], ...rules });
  const isFormula = (id, { target }) => // axe-core reads no MathML, and quotes long elements by their opening tag alone
    id === "empty-table-header" && document.querySelector(target[0])?.querySelector("math");
  return violations.flatMap(({ id, nodes }) =>
    nodes
      .filter((node) => !isFormula(id, node))
      .slice(0, 3)
      .map(({ target, any }) => `${id}: ${target.join(" ")} ${any[0]?.message ?? ""}`.trim()),
  );
}

export function focusFault() {
  const element = document.activeElement;
  const outlined = ({ outlineStyle, outlineWidth, boxShadow }) =>
    (outlineStyle !== "none" && parseFloat(outlineWidth) > 0) || boxShadow !== "none";
  const styles = [getComputedStyle(element), getComputedStyle(element, "::after")];
  if (styles[0].opacity === "0" && element.nextElementSibling) styles.push(getComputedStyle(element.nextElementSibling));
  return styles.some(outlined) ? null : `focus is not visible: ${element.outerHTML.slice(0, 80)}`;
}
