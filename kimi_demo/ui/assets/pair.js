// Side by side, the chat tab's third mode: one prompt in two ways. What was chosen for the columns is remembered by the browser.
(() => {
  "use strict";

  const KEY = "kimi-demo-pair";
  const kimi = window.kimi;
  const box = () => document.querySelector("#pair-sides .pair-sides");
  const sides = () => [...(box()?.querySelectorAll("[data-pair-side]") || [])];

  const read = (side) => {
    const at = (name) => side.querySelector(`[name="${name}"]`);
    return { preset: at("preset").value, thinking: at("thinking").checked, server: at("server")?.value || "" };
  };
  const chosen = () => Object.fromEntries(sides().map((side) => [side.dataset.pairSide, read(side)]));

  function remembered() {
    try { return JSON.parse(localStorage.getItem(KEY)) || {}; } catch { return {}; } // private mode
  }

  function put(side, { preset, thinking, server }) {
    const set = (name, value) => {
      const field = side.querySelector(`[name="${name}"]`);
      if (field && [...field.options].some((each) => each.value === value)) field.value = value;
    };
    set("preset", preset);
    set("server", server);
    if (typeof thinking === "boolean") side.querySelector('[name="thinking"]').checked = thinking;
  }

  let loading = null;
  function load() {
    loading ||= (async () => {
      try {
        const answer = await fetch("kimi/pair/sides", { cache: "no-store", signal: AbortSignal.timeout(15000) });
        if (!answer.ok) throw new Error(answer.status);
        box().innerHTML = await answer.text();
        const known = remembered();
        for (const side of sides()) put(side, known[side.dataset.pairSide] || {});
      } catch {
        setTimeout(shown, 2000);
      } finally { loading = null; }
    })();
    return loading;
  }

  // Looked at again: the operator may know another server by now.
  function shown() {
    if (document.documentElement.dataset.chatMode === "pair" && box()) load();
  }
  new MutationObserver(shown).observe(document.documentElement, { attributes: true, attributeFilter: ["data-chat-mode"] });
  new MutationObserver((_, observer) => { if (box()) { observer.disconnect(); shown(); } }).observe(document.documentElement, { childList: true, subtree: true });

  document.addEventListener("change", (event) => {
    const side = event.target.closest("[data-pair-side]");
    if (!side) return;
    // A preset is meant for a mode; that can be changed after it.
    if (event.target.name === "preset") side.querySelector('[name="thinking"]').checked = Boolean(event.target.selectedOptions[0].dataset.thinking);
    try { localStorage.setItem(KEY, JSON.stringify(chosen())); } catch { /* see remembered */ }
  });

  kimi.compose("pair", "#pair-run", {
    empties: false,
    enter: false,
    submit: async (text, [max_tokens]) => {
      if (!sides().length) await load();
      const told = await kimi.post("pair", "pair_run", { text, max_tokens, ...chosen() });
      if (told !== undefined) kimi.refresh("pair", true); // also where it was refused: another tab's prompt may be going on
      return Boolean(told);
    },
  });
})();
