// Boxes that load what is in them when they are opened, and copy buttons whose text is too long to stand on the page.
(() => {
  "use strict";

  async function load(details) {
    const box = details.querySelector(".loaded");
    try {
      const answer = await fetch(details.dataset.load, { cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      box.innerHTML = await answer.text();
      details.dataset.loaded = "1";
    } catch {
      box.textContent = details.dataset.failed;
    }
  }

  document.addEventListener("toggle", (event) => {
    const details = event.target;
    if (details.matches?.("details[data-load]") && details.open && !details.dataset.loaded) load(details);
  }, true);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy-from]");
    if (!button) return;
    // Safari allows the clipboard only within the click: it is given a promise, and the text may come later.
    const text = fetch(button.dataset.copyFrom, { cache: "no-store" }).then((answer) => answer.blob());
    if (window.ClipboardItem) await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);
    else await navigator.clipboard.writeText(await (await text).text());
    button.dataset.done = "1";
    setTimeout(() => delete button.dataset.done, 1500);
  });
})();
