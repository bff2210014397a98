// A person who types patients into the pages of a study: node study_patients.mjs URL PATIENTS.json COUNT.
//
// Asks for the next patient, fills in what is asked for, and saves. Errors on the console and of the page are printed.

import { readFileSync } from "node:fs";

import { launch } from "../docs/browser/browser.mjs";

const [url, file, count] = process.argv.slice(2);
const patients = JSON.parse(readFileSync(file, "utf8"));
const { origin } = new URL(url);
const browser = await launch();
const tab = await (await browser.newContext({ viewport: { width: 400, height: 800 } })).newPage();
tab.on("pageerror", (error) => console.log(error.message));
tab.on("console", (message) => message.type() === "error" && !message.text().includes("409") && console.log(message.text()));

await tab.goto(url);
await tab.locator("[name='who']").fill("Ann");
await tab.locator("main button.main, main form button").first().click();
for (let answered = 0; answered < Number(count); ) {
  await tab.goto(`${origin}/`);
  await tab.getByRole("button", { name: "Ask for the next example" }).click();
  await tab.waitForLoadState();
  const number = /^\/question\/(\d+)$/.exec(new URL(tab.url()).pathname)?.[1];
  if (number === undefined) {
    await tab.waitForTimeout(50); // the last questions of a batch are with somebody else
    continue;
  }
  for (const field of await tab.locator("input[name^='value:'][type=text]").all()) {
    const name = (await field.getAttribute("name")).slice("value:".length);
    await field.fill(String(patients[number][name]));
  }
  await tab.getByRole("button", { name: "Save" }).click();
  await tab.waitForLoadState();
  const text = await tab.locator("main").innerText();
  if (!text.includes("is complete")) throw new Error(`question ${number}: ${text.slice(0, 300)}`);
  answered += 1;
}
await browser.close();
