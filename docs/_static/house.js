// What the theme leaves out: names for its buttons, and formulas and pictures that can be scrolled by keyboard.

function nameControls() {
  for (const summary of document.querySelectorAll("nav details > summary")) {
    const link = summary.closest("li").querySelector("a");
    summary.setAttribute("aria-label", `Pages of ${link.textContent.trim()}`);
  }
  for (const button of document.querySelectorAll(".search-button-field")) { // its text is hidden on narrow screens
    button.setAttribute("aria-label", button.textContent.replace(/\s+/g, " ").trim());
  }
}

function letKeysScroll() {
  const watch = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      if (target.scrollWidth > target.clientWidth) target.setAttribute("tabindex", "0");
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll('math[display="block"], .wide')) watch.observe(box);
}

function summariseEmptyAnchors() { // an index entry leads to an anchor without text, of which Sphinx makes no summary
  if (typeof Search === "undefined") return;
  const summarise = Search.makeSearchSummary;
  Search.makeSearchSummary = (page, words, anchor) => summarise(page, words, anchor) ?? summarise(page, words);
}

document.addEventListener("DOMContentLoaded", () => {
  nameControls();
  letKeysScroll();
});
summariseEmptyAnchors();
