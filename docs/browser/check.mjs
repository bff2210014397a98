// Check the built documentation as a reader sees it, in headless Chromium: node docs/browser/check.mjs [folder].
//
// Links and anchors are checked on every page. The pages written by hand and some that a template makes are opened on a
// wide and a narrow screen, light and dark: nothing may be written to the console, loaded from elsewhere, wider than the
// screen or cut off, and axe-core may find nothing. On the start page the keyboard's focus has to be visible, and the
// search has to find what QUERIES asks for. --pictures=FOLDER takes screenshots, --only=REGEX opens some pages only.

import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, posix, relative, resolve } from "node:path";
import { parseArgs } from "node:util";

import { AXE, CHROMIUM, axeFaults, focusFault, launch } from "./browser.mjs";

const { values: options, positionals } = parseArgs({
  options: { pictures: { type: "string" }, only: { type: "string", default: "" } },
  allowPositionals: true,
});
const ROOT = resolve(positionals[0] ?? "docs/_build/html");
const TEMPLATES = ["core", "estimators", "estimators.SparseLinearRegressionCV", "solvers.minimize"]; // one page of each
const UNREAD = /^(genindex|py-modindex|search|sg_execution_times)|(^|\/)sg_execution_times|^_modules/;
const QUERIES = {
  // among the first three hits
  lasso: "guide/coming_from",
  "feature selection": "guide/choosing_k",
  "p-value": "guide/believe",
  multiclass: "guide/several_outputs",
  GPU: "guide/gpu",
};
const TYPES = {
  ".css": "text/css",
  ".html": "text/html",
  ".js": "text/javascript",
  ".png": "image/png",
  ".svg": "image/svg+xml",
};

const found = new Set();
function report(page, what) {
  const fault = `${page}: ${what}`;
  if (!found.has(fault)) console.log(fault);
  found.add(fault);
}

function filesIn(folder) {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll("\\", "/"));
}

function checkLinks(pages) {
  const matches = (text, pattern) => [...text.matchAll(pattern)].map((match) => match[1].replaceAll("&amp;", "&"));
  const texts = new Map(pages.map((page) => [page, readFileSync(join(ROOT, page), "utf8")]));
  const anchors = new Map([...texts].map(([page, text]) => [page, new Set(matches(text, /\s(?:id|name)="([^"]+)"/g))]));
  for (const [page, text] of texts) {
    for (const link of new Set(matches(text, /<[^>]*\s(?:href|src)="([^"]+)"/g))) {
      if (/^([a-z]+:|\/\/)/.test(link)) continue;
      const [path, anchor] = decodeURI(link).split("#");
      const file = path.split("?")[0];
      const target = file ? posix.normalize(posix.join(posix.dirname(page), file)) : page;
      const known = anchors.get(target);
      if (!existsSync(join(ROOT, target))) report(page, `the link ${link} leads nowhere`);
      else if (anchor && known && !known.has(anchor)) report(page, `no anchor for the link ${link}`);
    }
  }
}

function serve() {
  const server = createServer((request, response) => {
    const file = join(ROOT, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    const there = file.startsWith(ROOT) && existsSync(file) && statSync(file).isFile();
    response.writeHead(there ? 200 : 404, { "Content-Type": TYPES[extname(file)] ?? "application/octet-stream" });
    response.end(there ? readFileSync(file) : "");
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

// The functions below run in the page.

function layoutFaults() {
  const article = document.querySelector(".bd-article-container"); // which the theme lets scroll as a whole
  const scrolls = (element) => element !== article && ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  const faults = [];
  const { scrollWidth } = document.documentElement;
  if (scrollWidth > innerWidth) faults.push(`wider than the screen: ${scrollWidth}`);
  if (article?.scrollWidth > article?.clientWidth + 1) faults.push(`the article is too wide: ${article.scrollWidth}`);
  for (const element of document.querySelectorAll("main :is(pre, table, img, svg, math, h1, h2, h3, dt)")) {
    if (element.getBoundingClientRect().right <= innerWidth + 1) continue;
    let box = element;
    while (box && !scrolls(box)) box = box.parentElement;
    if (!box) faults.push(`cut off: ${element.localName} "${(element.textContent || element.alt).trim().slice(0, 40)}"`);
  }
  return faults;
}

// Which rules of axe-core each screen needs: contrast does not depend on the width, nor other rules on the colours. Left
// out are target-size, half of the time for links within text, which are exempt, and two pages with thousands of cells,
// which would take as long as twenty others.
const ALL = { rules: { "target-size": { enabled: false } } };
const NARROW = ["scrollable-region-focusable", "link-name", "button-name", "label-content-name-mismatch"];
const SCREENS = [
  [1200, "light", ALL],
  [1200, "dark", { runOnly: ["color-contrast"] }],
  [400, "dark", null],
  [400, "light", { runOnly: NARROW }],
];
const LONG = ["papers.html", "changelog.html"];
const DEBOUNCED = 400; // ms; the theme makes what scrolls focusable 300 ms after the last change of size

async function checkPage(tab, base, page, axe) {
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.setViewportSize({ width: SCREENS[0][0], height: 900 });
  await tab.goto(`${base}/${page}`);
  await tab.evaluate(axe);
  for (const [width, colorScheme, rules] of SCREENS) {
    await tab.emulateMedia({ colorScheme });
    if (tab.viewportSize().width !== width) {
      await tab.setViewportSize({ width, height: 900 });
      await tab.waitForTimeout(DEBOUNCED);
    }
    const faults = await tab.evaluate(layoutFaults);
    if (rules && !LONG.includes(page)) faults.push(...(await tab.evaluate(axeFaults, rules)));
    for (const fault of faults) report(page, `${fault} (${width} px, ${colorScheme})`);
    if (options.pictures) {
      const name = `${page.replace(/\.html$/, "").replaceAll("/", "_")}_${width}_${colorScheme}.png`;
      await tab.screenshot({ path: join(options.pictures, name) });
    }
  }
}

async function checkFocus(tab, base, page) {
  await tab.goto(`${base}/${page}`);
  for (let press = 0; press < 25; press++) {
    await tab.keyboard.press("Tab");
    const fault = await tab.evaluate(focusFault);
    if (fault) report(page, fault);
  }
}

async function checkSearch(tab, base) {
  for (const [query, page] of Object.entries(QUERIES)) {
    await tab.goto(`${base}/search.html?q=${encodeURIComponent(query)}`);
    await tab.waitForFunction(() => /\d/.test(document.querySelector("p.search-summary")?.textContent));
    const links = await tab.$$("#search-results ul.search li > a");
    const hits = await Promise.all(links.slice(0, 3).map((link) => link.evaluate(({ href }) => href)));
    const hit = hits.some((url) => url.includes(`/${page}.html`));
    if (!hit) report("search.html", `"${query}" finds ${hits.join(", ")} before ${page}`);
  }
}

async function main() {
  const pages = filesIn(ROOT).filter((file) => file.endsWith(".html") && !file.startsWith("_static/"));
  if (!pages.length) report(ROOT, "there are no pages; build the documentation first");
  checkLinks(pages);
  if (!CHROMIUM) return console.log("Chromium is not installed (Debian package chromium): only links were checked");
  const axe = readFileSync(AXE, "utf8");
  const shown = new Set(TEMPLATES.map((name) => `generated/hardthresh.${name}.html`));
  const twin = (page) => page.startsWith("generated/") && !shown.has(page);
  const opened = pages.filter((page) => !twin(page) && !UNREAD.test(page) && RegExp(options.only).test(page));
  const server = await serve();
  const base = `http://127.0.0.1:${server.address().port}`;
  const browser = await launch();
  const openTab = async () => {
    const tab = await browser.newPage({ reducedMotion: "reduce" }); // colours do not fade from light to dark
    const here = () => posix.relative("/", new URL(tab.url()).pathname);
    tab.on("console", (message) => ["error", "warning"].includes(message.type()) && report(here(), message.text()));
    tab.on("pageerror", (error) => report(here(), error.message));
    tab.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(base) && !/^(data|blob):/.test(url)) report(here(), `loads ${url}`);
    });
    return tab;
  };
  const queue = opened.values();
  const work = async () => {
    const tab = await openTab();
    for (const page of queue) await checkPage(tab, base, page, axe);
  };
  await Promise.all([work(), work()]);
  const tab = await openTab();
  if (opened.includes("index.html")) await checkFocus(tab, base, "index.html");
  if (pages.includes("search.html")) await checkSearch(tab, base);
  await browser.close();
  server.close();
  console.log(`${pages.length} pages: links checked; ${opened.length} opened at 1200 and 400 px, light and dark`);
}

await main();
console.log(`${found.size} found`);
process.exitCode = found.size ? 1 : 0;
