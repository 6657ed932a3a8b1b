// "16 minutes ago" has its full time on hover; a key (t), a tap on the time and a button in the foot
// show all of them in full, for keyboards and fingers. Kept while the window is open.
const KEPT = "times-in-full";
const root = document.documentElement;
const foot = document.querySelector(".foot-inner");
const button = Object.assign(document.createElement("button"), { type: "button", className: "link" });

function show(full) {
  root.classList.toggle(KEPT, full);
  button.setAttribute("aria-pressed", String(full));
  try {
    sessionStorage.setItem(KEPT, full ? "yes" : "");
  } catch {
    // A browser that keeps nothing shows them on this page only.
  }
}

const kept = () => {
  try {
    return sessionStorage.getItem(KEPT) === "yes";
  } catch {
    return false;
  }
};
const turn = () => show(!root.classList.contains(KEPT));

button.textContent = "Times in full (t)";
button.addEventListener("click", turn);
foot?.append(" ", button);
show(kept());
document.addEventListener("click", (event) => {
  if (event.target instanceof Element && event.target.matches("time[title]")) turn();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "t" || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const target = event.target instanceof Element ? event.target : document.body;
  if (target.closest("input, textarea, select, [contenteditable]") === null) turn();
});
