// A read-only field marked data-copy gets a button that copies it: it is shown this once.
for (const field of document.querySelectorAll("input[data-copy]")) {
  field.addEventListener("focus", () => field.select());
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
  button.setAttribute("aria-live", "polite");
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      button.textContent = "Copied";
    } catch {
      // Without https a browser may refuse; the field is selected, so that the keys work.
      button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
    }
  });
  field.after(button);
}
