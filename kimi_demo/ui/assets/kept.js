// The batch tab's fields survive a reload: Gradio tells their values at each change, and gets them back when the page is loaded, which
// may be before the other scripts are there.
(() => {
  "use strict";

  const KEY = "kimi-demo-batch-fields";
  let asked = false; // until then Gradio tells what the fields begin with

  window.kimiKept = {
    keep(values) {
      if (!asked) return;
      try { sessionStorage.setItem(KEY, JSON.stringify(values)); } catch { /* private mode: they are lost then */ }
    },
    // values: what the fields hold now, so what they keep where nothing was kept.
    kept(values) {
      asked = true;
      try {
        const before = JSON.parse(sessionStorage.getItem(KEY));
        return before?.length === values.length ? before : values;
      } catch { return values; }
    },
  };
})();
