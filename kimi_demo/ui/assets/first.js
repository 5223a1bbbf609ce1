// Carried out before anything is drawn: the page's language, and light or dark, so that neither is wrong for a moment.
(() => {
  "use strict";

  const KEY = "kimi-demo-theme";
  const THEMES = ["system", "light", "dark"];
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const { language } = document.currentScript.dataset;

  root.lang = language;
  // Gradio's own words, those of its API page for example, follow the browser's language, which it reads later than this.
  Object.defineProperty(navigator, "language", { get: () => language, configurable: true });

  let theme = remembered();

  function remembered() {
    const asked = new URLSearchParams(location.search).get("__theme"); // as Gradio's own pages take it
    if (THEMES.includes(asked)) return asked;
    try {
      const kept = localStorage.getItem(KEY);
      return THEMES.includes(kept) ? kept : "system";
    } catch { return "system"; } // private mode
  }

  function show() {
    const dark = theme === "dark" || (theme === "system" && system.matches);
    root.dataset.scheme = dark ? "dark" : "light";
    if (document.body && document.body.classList.contains("dark") !== dark) document.body.classList.toggle("dark", dark);
  }

  // Gradio sets its own mark for dark on the body, by the system alone; ours is there again before the next picture is drawn.
  const body = new MutationObserver(show);
  new MutationObserver((_, observer) => {
    if (!document.body) return;
    observer.disconnect();
    body.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    show();
  }).observe(root, { childList: true });
  system.addEventListener("change", show);
  window.addEventListener("storage", (event) => { if (event.key === KEY) { theme = remembered(); show(); } }); // another tab
  show();

  window.kimiTheme = {
    get: () => theme,
    set(name) {
      theme = name;
      try { localStorage.setItem(KEY, name); } catch { /* see remembered */ }
      show();
    },
  };
})();
