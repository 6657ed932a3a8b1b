// A form marked data-drop takes files that are dropped anywhere on it, or pasted, into its file field.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const field = form.querySelector('input[type="file"]');
  const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const take = (from) => {
    const taken = new DataTransfer();
    const files = [...from];
    for (const file of field.multiple ? files : files.slice(0, 1)) taken.items.add(file);
    field.files = taken.files;
    field.focus();
  };
  const hint = Object.assign(document.createElement("p"), { className: "help" });
  hint.textContent = `Or drop ${field.multiple ? "files" : "a file"} anywhere on this form.`;
  field.after(hint);
  form.addEventListener("paste", (event) => {
    if (!event.clipboardData?.files.length) return;
    event.preventDefault();
    take(event.clipboardData.files);
  });
  form.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  form.addEventListener("dragleave", (event) => {
    if (!form.contains(event.relatedTarget)) form.classList.remove("dropping");
  });
  form.addEventListener("drop", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    form.classList.remove("dropping");
    take(event.dataTransfer.files);
  });
}
