// What a viewer of a public page may use, at the foot of the page; asked for anew whenever something has ended.
(() => {
  "use strict";

  const box = () => document.getElementById("limits");
  const AGAIN_MS = 60000;
  let timer = 0;

  async function load() {
    clearTimeout(timer);
    try {
      const answer = await fetch("kimi/limits", { cache: "no-store" });
      if (answer.ok && box()) {
        const open = box().querySelector("details")?.open;
        box().innerHTML = await answer.text();
        if (open) box().querySelector("details").open = true;
      }
    } catch { /* the badge says that the app cannot be reached */ }
    timer = setTimeout(load, document.hidden ? 10 * AGAIN_MS : AGAIN_MS);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-forget-me]");
    if (!button || !window.confirm(button.dataset.sure)) return;
    button.disabled = true;
    const told = await window.kimi.post("chat", "forget_me", {});
    if (!told) { button.disabled = false; return; }
    try { sessionStorage.removeItem("kimi-demo-chat"); } catch { /* private mode */ }
    location.reload();
  });

  for (const name of ["start", "end"]) document.addEventListener(`kimi:${name}`, () => { if (box()) load(); });
  new MutationObserver((_, observer) => {
    if (!box()) return;
    observer.disconnect();
    load();
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
