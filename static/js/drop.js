// A form marked data-drop takes files that are dropped anywhere on it into its file field.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const field = form.querySelector('input[type="file"]');
  const carriesFiles = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
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
    const taken = new DataTransfer();
    const files = [...event.dataTransfer.files];
    for (const file of field.multiple ? files : files.slice(0, 1)) taken.items.add(file);
    field.files = taken.files;
    field.focus();
  });
}
