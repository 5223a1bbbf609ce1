// The modes of the chat tab: conversations, a raw prompt, one prompt in two ways (pair.js). The style sheet shows one by `data-chat-mode` on the root.
(() => {
  "use strict";

  const KEY = "kimi-demo-chat-mode";

  const modes = () => [...document.querySelectorAll("button[data-chat-mode]")].map((each) => each.dataset.chatMode);

  function set(mode) {
    document.documentElement.dataset.chatMode = mode;
    for (const each of document.querySelectorAll("button[data-chat-mode]")) {
      each.setAttribute("aria-checked", String(each.dataset.chatMode === mode));
      each.tabIndex = each.dataset.chatMode === mode ? 0 : -1;
    }
  }

  function chosen() {
    let kept = null;
    try { kept = localStorage.getItem(KEY); } catch { /* private mode */ }
    return modes().includes(kept) ? kept : "chat";
  }

  function choose(mode) {
    try { localStorage.setItem(KEY, mode); } catch { /* see chosen */ }
    set(mode);
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-chat-mode]");
    if (button) choose(button.dataset.chatMode);
  });

  document.addEventListener("keydown", (event) => {
    const button = event.target.closest?.("button[data-chat-mode]");
    if (!button || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    const known = modes();
    const next = known.indexOf(button.dataset.chatMode) + (event.key === "ArrowRight" ? 1 : known.length - 1);
    choose(known[next % known.length]);
    document.querySelector('button[data-chat-mode][aria-checked="true"]').focus();
  });

  // ---- the field ----------------------------------------------------------------------------------------------------

  const kimi = window.kimi;
  const composer = kimi.compose("raw", "#raw-run", {
    empties: false,
    enter: false,
    submit: async (text, [temperature, max_tokens]) => {
      const told = await kimi.post("raw", "raw_run", { text, temperature, max_tokens });
      if (told !== undefined) kimi.refresh("raw", true); // also where it was refused: another tab's prompt may be going on
      return Boolean(told);
    },
  });

  kimi.raw = {
    // The open conversation as its prompt; what is typed while that is on its way stays.
    async render() {
      const before = composer.field().value;
      const told = await kimi.post("raw", "raw_render", { chat: kimi.conversation(), text: before });
      if (!told) return;
      if (composer.field().value === before) kimi.write(composer.field(), told.prompt);
      kimi.notice("raw", told.html);
    },
    // The guide's example, whole.
    guide(prompt, temperature, tokens) {
      kimi.write(composer.field(), prompt);
      kimi.write(document.querySelector("#raw-temperature input"), temperature);
      kimi.write(document.querySelector("#raw-max-tokens input"), tokens);
      kimi.notice("raw", "");
    },
  };

  set(chosen());
  // Gradio puts the tab's content in place when it is first shown.
  new MutationObserver((_, observer) => {
    if (!document.querySelector("button[data-chat-mode]")) return;
    observer.disconnect();
    set(chosen());
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
