// A person measures on the pages of a study, in headless Chromium, with the keyboard alone: node page.mjs URL.
//
// URL is what the server printed. Some pages are looked at on a light telephone and a dark laptop, with --all each page
// also on a dark telephone and a light laptop: nothing may be written to the console, loaded from elsewhere, wider than
// the screen or without a visible focus, and axe-core may find nothing. What was found is printed, one thing a line, and
// then "N found". --pictures=FOLDER takes screenshots.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";

import { AXE, axeFaults, focusFault, launch } from "../../../docs/browser/browser.mjs";

const {
  values: { all, pictures },
  positionals: [url],
} = parseArgs({ options: { all: { type: "boolean" }, pictures: { type: "string" } }, allowPositionals: true });
const { origin } = new URL(url);
const axe = readFileSync(AXE, "utf8");
const SCREENS = [
  [400, "light", {}],
  [1200, "dark", { runOnly: ["color-contrast"] }],
  ...(all
    ? [
        [400, "dark", {}],
        [1200, "light", {}],
      ]
    : []),
];
const SOME = ["question", "question_back", "study", "prediction"]; // those with most on them
let faults = 0;

function report(where, what) {
  console.log(`${where}: ${what}`);
  faults += 1;
}

const browser = await launch();
const context = await browser.newContext({ reducedMotion: "reduce", viewport: { width: 400, height: 800 } });
const tab = await context.newPage();
const here = () => new URL(tab.url()).pathname;
tab.setDefaultTimeout(60_000);
tab.on("console", (message) => {
  const expected = /status of 4(04|09|22)/.test(message.text()); // what is not done
  if (["error", "warning"].includes(message.type()) && !expected) report(here(), message.text());
});
tab.on("pageerror", (error) => report(here(), error.message));
tab.on("request", (request) => request.url().startsWith(origin) || report(here(), `loads ${request.url()}`));

async function look(name) {
  if (!all && !SOME.includes(name)) return;
  await tab.evaluate(axe);
  for (const [width, colorScheme, rules] of SCREENS) {
    const where = `${name} (${width} px, ${colorScheme})`;
    await tab.emulateMedia({ colorScheme });
    await tab.setViewportSize({ width, height: 800 });
    const wide = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (wide > 0) report(where, `${wide} px wider than the screen`);
    for (const fault of await tab.evaluate(axeFaults, rules)) report(where, fault);
    if (!pictures) continue;
    const height = await tab.evaluate(() => document.documentElement.scrollHeight);
    await tab.setViewportSize({ width, height: Math.max(height, 800) }); // what sticks to the screen is at its end
    await tab.screenshot({ path: join(pictures, `${name}_${width}_${colorScheme}.png`) });
  }
  await tab.emulateMedia({ colorScheme: "light" });
  await tab.setViewportSize({ width: 400, height: 800 });
}

const focused = () => tab.evaluate(() => ({ name: document.activeElement.name ?? "", text: document.activeElement.textContent.trim() }));

// Press Tab until something is focused, as somebody without a mouse does; each stop must be visible.
async function tabTo(wanted) {
  for (let press = 0; press < 80; press += 1) {
    await tab.keyboard.press("Tab");
    const fault = await tab.evaluate(focusFault);
    if (fault && !fault.includes("<body")) report(here(), fault); // after the last stop comes the browser itself
    const { name, text } = await focused();
    if (name === wanted || text === wanted) return;
  }
  throw new Error(`the keyboard does not reach ${wanted} on ${here()}`);
}

async function pressEnter() {
  const before = tab.url();
  await Promise.all([tab.waitForNavigation({ waitUntil: "load" }), tab.keyboard.press("Enter")]);
  return before;
}

function expect(what, condition) {
  if (!condition) report(here(), `expected ${what}`);
}

const text = () => tab.evaluate(() => document.querySelector("main").innerText);

// --- sign in; the token leaves the address ---
await tab.goto(url);
expect("no token in the address", !tab.url().includes("token"));
await look("sign_in");
await tab.keyboard.type("Ann <b>Bee</b>");
await pressEnter();
expect("the start page", here() === "/");
await look("start");

// --- ask, type a part, reload: the draft is there ---
await tabTo("Ask for the next example");
await pressEnter();
const question = here();
expect("a question", /^\/question\/\d+$/.test(question));
await look("question");
await tabTo("subject");
await tab.keyboard.type("patient <1>");
await tab.keyboard.press("Enter"); // goes to the next field
expect("Enter to go to the next field", (await focused()).name === "value:age");
await tab.keyboard.type("61");
await tabTo("value:temperature");
await tab.keyboard.type("900");
await tab.keyboard.press("Tab");
expect("an impossible value to be refused as it is typed", (await text()).includes("This is not possible"));
await tab.reload();
const kept = await tab.evaluate(() => [...document.querySelectorAll("input[type=text]")].map((one) => one.value));
expect("what was typed to survive a reload", kept.includes("61") && kept.includes("900") && kept.includes("patient <1>"));
expect("a note about it", (await text()).includes("is filled in again"));
await look("draft");
await tab.locator("[name='value:temperature']").focus();
await tab.keyboard.press("Control+a");
await tab.keyboard.type("37,4");
await tabTo("value:pain"); // radio buttons
await tab.keyboard.press("ArrowRight");
await tabTo("value:creatinine");
await tab.keyboard.type("9");
await tabTo("unit:creatinine");
await tab.keyboard.press("ArrowDown"); // mg/dl
await tabTo("missing:sodium");
await tab.keyboard.press("Space");
await tab.keyboard.press("Space"); // it can be measured after all
await tabTo("Save");
await pressEnter();

// --- the value outside of its range comes back, and is confirmed ---
expect("a question back", (await text()).includes("is outside of the expected"));
await look("question_back");
await tabTo("confirm:creatinine");
await tab.keyboard.press("Space");
await tabTo("Save");
await pressEnter();
expect("a part to be saved", (await text()).includes("Still needed: sodium"));
expect("the draft to be gone", !(await tab.evaluate(() => Object.keys(localStorage).some((name) => name.startsWith("hardthresh:")))));
await look("part_saved");

// --- what is typed survives a notice about something else ---
await tab.locator("[name='value:sodium']").fill("139");
await tab.goto(`${origin}${question}?correct=1`);
await tab.locator("[name='value:temperature']").fill("37.5");
await tab.locator("[name='reason']").fill("read again");
await tabTo("Correct");
await pressEnter();
expect("a notice", (await text()).includes("was corrected"));
expect("the draft to be there", (await tab.locator("[name='value:sodium']").inputValue()) === "139");
await tab.locator("[name='value:sodium']").fill("");

// --- the rest ---
const REST = { sodium: "140", CRP: "12.5", "base excess": "-1.5", stay: "6" };
for (const [name, value] of Object.entries(REST)) {
  const field = tab.locator(`[name='value:${name}']`);
  if (!(await field.count())) continue;
  await field.focus();
  await tab.keyboard.type(value);
}
if (await tab.locator("[name='value:smoker']").count()) {
  await tab.locator("[name='value:smoker']").first().focus();
  await tab.keyboard.press("Space");
}
if (await tab.locator("[name='value:ward']").count()) await tab.locator("[name='value:ward']").selectOption("surgical");
await tabTo("Save");
await pressEnter();
expect("thanks", (await text()).includes("is complete"));
await look("complete");

// --- the answer is corrected ---
await tab.goto(`${origin}${question}`);
await look("answered");
await tab.locator("[name='value:age']").focus();
await tab.keyboard.press("Control+a");
await tab.keyboard.type("62");
await tabTo("reason");
await tab.keyboard.type("typing error");
await tabTo("Correct");
await pressEnter();
expect("the correction", (await text()).includes("was corrected"));

// --- everything else ---
for (const [path, name] of [["/answers", "answers"], ["/study", "study"], ["/predict", "predict"], ["/question/99999", "refused"]]) {
  await tab.goto(`${origin}${path}`).catch((error) => report(path, error.message));
  await look(name);
}
await tab.goto(`${origin}/predict`);
for (const field of await tab.locator("input[name^='value:'][type=text]").all()) await field.fill("50");
for (const field of await tab.locator("select[name^='value:']").all()) await field.selectOption({ index: 1 });
for (const field of await tab.locator(".options").all()) await field.locator("input").first().check();
await tabTo("Predict");
await pressEnter();
expect("a prediction", (await tab.locator(".result .big").count()) === 1);
await look("prediction");

// --- signing out removes the draft ---
await tab.goto(origin);
await tabTo("Ask for the next example");
await pressEnter();
await tab.locator("[name='value:age']").fill("63");
const drafts = () => tab.evaluate(() => Object.keys(localStorage).filter((name) => name.startsWith("hardthresh:")).length);
expect("a draft", (await drafts()) === 1);
await tab.locator("form.person button").focus();
await pressEnter();
expect("to be signed out", here() === "/sign-in");
expect("no draft after signing out", (await drafts()) === 0);
await look("signed_out");

await browser.close();
console.log(`${faults} found`);
process.exitCode = faults ? 1 : 0;
