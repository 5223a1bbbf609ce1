// A file that is dropped anywhere on the batch tab; while one is held over it, the place for files says so.
(() => {
  "use strict";

  const tab = () => document.getElementById("tab-batch");
  const words = () => document.querySelector("#batch-file .batch-picker")?.dataset || {};
  const meant = (event) => document.getElementById("batch-results")?.offsetParent && [...(event.dataTransfer?.types || [])].includes("Files");
  const over = () => tab()?.classList.remove("dropping");

  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!meant(event)) return;
      event.preventDefault();
      event.dataTransfer.dropEffect = "copy";
      tab()?.classList.add("dropping");
    }, true);
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) over(); });
  document.addEventListener("dragend", over);

  document.addEventListener("drop", (event) => {
    if (!meant(event)) return;
    event.preventDefault();
    event.stopPropagation();
    over();
    const { files, items } = event.dataTransfer;
    const folder = [...items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
    if (folder || files.length > 1) window.kimi.batch.refuse(words().one);
    else if (files.length) window.kimi.batch.send(files[0]);
  }, true);
})();
