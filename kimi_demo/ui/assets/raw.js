// The two modes of the chat tab: conversations, or a raw prompt. The style sheet shows one by `data-chat-mode` on the root.
(() => {
  "use strict";

  const KEY = "kimi-demo-chat-mode";

  function set(mode) {
    document.documentElement.dataset.chatMode = mode;
    for (const each of document.querySelectorAll("button[data-chat-mode]")) {
      each.setAttribute("aria-checked", String(each.dataset.chatMode === mode));
      each.tabIndex = each.dataset.chatMode === mode ? 0 : -1;
    }
  }

  function chosen() {
    try { return localStorage.getItem(KEY) === "raw" ? "raw" : "chat"; } catch { return "chat"; } // private mode
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
    choose(button.dataset.chatMode === "raw" ? "chat" : "raw");
    document.querySelector('button[data-chat-mode][aria-checked="true"]').focus();
  });

  set(chosen());
  // Gradio puts the tab's content in place when it is first shown.
  new MutationObserver((_, observer) => {
    if (!document.querySelector("button[data-chat-mode]")) return;
    observer.disconnect();
    set(chosen());
  }).observe(document.documentElement, { childList: true, subtree: true });
})();
