// What is asked for every two seconds comes folded: what a reader has unfolded stays so.
const unfolded = new Set();
document.addEventListener(
  "toggle",
  (event) => {
    const node = event.target;
    if (!(node instanceof HTMLDetailsElement) || !node.id || !node.isConnected) return;
    if (node.open) unfolded.add(node.id);
    else unfolded.delete(node.id);
  },
  true,
);
document.addEventListener("htmx:oobAfterSwap", () => {
  for (const id of unfolded) {
    const node = document.getElementById(id);
    if (node) node.open = true;
  }
});
