// Keys: "/" goes to the search field, Escape leaves it; g then i, f, c, k, w, r goes to a page.
const typing = (node) => node.closest("input, textarea, select, [contenteditable]") !== null;
const places = { i: "Investigations", f: "Findings", c: "Compare", k: "Check", w: "Workers", r: "Reports" };
let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target instanceof Element ? event.target : document.body;
  if (event.key === "Escape" && target.matches("[data-key]")) target.blur();
  if (typing(target)) return;
  const wanted = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (wanted) {
    event.preventDefault();
    wanted.focus();
    wanted.select?.();
    return;
  }
  if (event.key === "g") {
    going = event.timeStamp;
  } else if (going && event.timeStamp - going < 1500 && places[event.key]) {
    for (const link of document.querySelectorAll("nav.site a")) {
      if (link.textContent === places[event.key]) link.click();
    }
    going = 0;
  }
});
