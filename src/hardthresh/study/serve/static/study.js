// What makes the pages of a study quicker to use; without it they work, and the server checks everything again.

"use strict";

const { study, who } = document.body.dataset;
const NUMBER = /^([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?)\s*(.*)$/;
const COMMA = /^([+-]?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,})))(\s.*|)$/; // a decimal comma; "1,200" may be a thousand

// --- values are checked as they are typed ---

function limits(low, high, unit) {
  return `${Number(low)} to ${Number(high)}${unit ? ` ${unit}` : ""}`;
}

// What is wrong with a number, or has to be confirmed; nothing if it is right.
function judge(typed, { kind, low, high, least, most, unit = "" }, units) {
  const comma = COMMA.exec(typed);
  const found = NUMBER.exec(comma ? comma[1].replace(",", ".") + comma[2] : typed);
  if (!found) return { error: "This must be a number." };
  const written = found[2].trim();
  const option = units && [...units.options].find((one) => (written ? one.value === written : one.selected));
  if (written && !option && written !== unit) {
    const known = units ? [...units.options].map((one) => one.value).join(", ") : unit || "no unit";
    return { error: `The unit must be ${known}.` };
  }
  const value = Number(found[1]) * Number(option?.dataset.factor ?? 1);
  if (!Number.isFinite(value)) return { error: "This is too large." };
  if (kind === "integer" && !Number.isInteger(value)) return { error: "This must be a whole number." };
  if (least !== undefined && (value < Number(least) || value > Number(most))) {
    return { error: `This is not possible: it must be ${limits(least, most, unit)}.` };
  }
  if (low !== undefined && (value < Number(low) || value > Number(high))) {
    return { doubt: `Outside of the expected ${limits(low, high, unit)}: you will be asked to confirm it.` };
  }
  return {};
}

function entryOf(field) {
  return field.querySelector(".entry > input, .entry > select:not(.units)");
}

function typedIn(field) {
  const entry = entryOf(field);
  return entry ? entry.value.trim() : (field.querySelector("[type=radio]:checked")?.value ?? "");
}

function isMissing(field) {
  return field.querySelector("[name^='missing:']")?.checked ?? false;
}

function check(field) {
  const entry = entryOf(field);
  const typed = typedIn(field);
  const judged = entry?.localName === "input" && typed && !isMissing(field) ? judge(typed, field.dataset, field.querySelector(".units")) : {};
  field.classList.toggle("wrong", Boolean(judged.error));
  field.classList.toggle("doubtful", Boolean(judged.doubt));
  field.classList.toggle("right", Boolean(typed) && !judged.error && !judged.doubt);
  if (entry) entry.setAttribute("aria-invalid", String(Boolean(judged.error || judged.doubt)));
  const said = judged.error ?? judged.doubt ?? "";
  const place = field.querySelector(".said");
  if (place.textContent !== said) place.textContent = said;
}

// A value that could not be measured cannot be typed.
function setMissing(field) {
  for (const control of field.querySelectorAll("[name^='value:'], .units")) control.disabled = isMissing(field);
}

function count(form) {
  const fields = [...form.querySelectorAll("[data-kind]")];
  const done = fields.filter((field) => typedIn(field) || isMissing(field)).length;
  const place = form.querySelector(".count");
  if (place) place.textContent = `${done} of ${fields.length} entered`;
}

for (const form of document.querySelectorAll("form.measure")) {
  const fields = [...form.querySelectorAll("[data-kind]")];
  for (const field of fields) {
    setMissing(field);
    field.addEventListener("change", ({ target }) => {
      if (target.closest(".confirm")) return;
      setMissing(field);
      check(field);
      count(form);
    });
    // an error is said once the field is left, and taken back as soon as it is mended
    field.addEventListener("input", ({ target }) => {
      if (target.closest(".confirm")) return;
      field.querySelector(".confirm")?.remove(); // it was about another value
      if (field.matches(".wrong, .doubtful")) check(field);
      count(form);
    });
  }
  // as on a numeric pad: Enter goes to the next field, and from the last one saves
  form.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.key !== "Enter" || event.isComposing || !target.matches("input[type=text]")) return;
    const open = [...form.querySelectorAll("input[type=text], .entry select:not(.units), .main")].filter((one) => !one.disabled);
    const next = open[open.indexOf(target) + 1];
    if (!next || next.matches(".main")) return;
    event.preventDefault();
    next.focus();
    next.select?.();
  });
}

// --- times are those of the place where the page is read ---

for (const time of document.querySelectorAll("time")) {
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime())) continue;
  time.textContent = at.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
}

// --- drafts: what was typed and not saved yet, on this device alone, until it is saved or its person signs out ---

const PREFIX = `hardthresh:${study}:${who}:`;

function drafts() {
  try {
    return window.localStorage;
  } catch {
    return null; // switched off in this browser
  }
}

const typedFields = (form) => [...form.elements].filter((one) => one.name && one.type !== "hidden" && !one.name.startsWith("confirm:"));

function keep(form, place) {
  const content = {};
  for (const one of typedFields(form)) {
    const choice = ["checkbox", "radio"].includes(one.type);
    if (choice ? one.checked : one.value && !one.matches(".units")) content[one.name] = one.value;
    if (one.matches(".units") && one.selectedIndex > 0) content[one.name] = one.value;
  }
  if (Object.keys(content).length) place.setItem(PREFIX + form.dataset.question, JSON.stringify(content));
  else place.removeItem(PREFIX + form.dataset.question);
}

// Remove the person's drafts whose names are chosen.
function forget(place, chosen) {
  for (const name of Object.keys(place)) if (name.startsWith(PREFIX) && chosen(name)) place.removeItem(name);
}

function restore(form, content) {
  let restored = false;
  for (const one of typedFields(form)) {
    const kept = content[one.name];
    if (typeof kept !== "string") continue;
    if (["checkbox", "radio"].includes(one.type)) {
      restored ||= !one.checked && one.value === kept;
      one.checked = one.value === kept;
    } else {
      restored ||= one.value !== kept;
      one.value = kept;
    }
  }
  return restored;
}

function useDraft(form, place) {
  const name = PREFIX + form.dataset.question;
  if (document.querySelector(".notice")?.dataset.saved === form.dataset.question) place.removeItem(name);
  let content = {};
  try {
    content = JSON.parse(place.getItem(name) ?? "{}") ?? {};
  } catch {
    place.removeItem(name);
  }
  const note = document.querySelector(".draft");
  if (!document.querySelector(".problems") && restore(form, content)) {
    note.hidden = false;
    for (const field of form.querySelectorAll("[data-kind]")) {
      setMissing(field);
      check(field);
    }
  }
  note.querySelector("button").addEventListener("click", () => {
    place.removeItem(name);
    form.reset();
    note.hidden = true;
    for (const field of form.querySelectorAll("[data-kind]")) {
      setMissing(field);
      check(field);
    }
    count(form);
  });
  form.addEventListener("input", () => keep(form, place));
  form.addEventListener("change", () => keep(form, place));
}

const place = drafts();
if (place && study) {
  for (const form of document.querySelectorAll("form[data-question]")) useDraft(form, place);
  const open = document.querySelector("[data-open]");
  if (open) {
    const kept = new Set(open.dataset.open.split(" ").map((number) => PREFIX + number));
    forget(place, (name) => !kept.has(name));
  }
  document.querySelector("form.person")?.addEventListener("submit", () => forget(place, () => true));
}
for (const form of document.querySelectorAll("form.measure")) count(form);
document.querySelector(".problems")?.focus();
