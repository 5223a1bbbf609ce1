// What would be lost by a change of language, which loads the page again, and is kept nowhere else: text in forms that have not been
// sent, how far a conversation was scrolled, what was folded open. It goes along in the tab's own storage, once.
(() => {
  "use strict";

  const KEY = "kimi-demo-carried";
  const WAIT_MS = 10000; // for the page to be as long again as it was
  const SETTLE_MS = 1000; // in which the parts of a conversation find their heights
  // Composers and the batch tab keep theirs at each keystroke; files cannot be put back by a page, and keys stay out of storage.
  const ELSEWHERE = "#chat-input *, #tools-input *, #raw-input *, #tab-batch .options *, #batch-prompts *, [type=file], [type=password], [role=listbox], [role=combobox]";
  const FIELDS = "input, textarea, select";

  // ---- what there is -----------------------------------------------------------------------------------------------

  const NUMBERED = /^(html-|component-|c\d+-)/; // ids that Gradio makes up, anew for each page

  // From the nearest element with an id of ours down, by name or place: the same in both languages.
  function path(element) {
    if (element.id && !NUMBERED.test(element.id)) return `#${CSS.escape(element.id)}`;
    const parent = element.parentElement;
    if (!parent) return element.localName;
    const name = element.getAttribute("name");
    const own = name ? `${element.localName}[name="${CSS.escape(name)}"]` : `${element.localName}:nth-of-type(${[...parent.children].filter((each) => each.localName === element.localName).indexOf(element) + 1})`;
    return `${path(parent)} > ${own}${element.type === "radio" ? `[value="${CSS.escape(element.value)}"]` : ""}`;
  }

  const isBox = (field) => field.type === "checkbox" || field.type === "radio";

  function changed(field) {
    if (field.localName === "select") return [...field.options].some((option) => option.selected !== option.defaultSelected);
    return isBox(field) ? field.checked !== field.defaultChecked : field.value !== field.defaultValue;
  }

  // A message of one's own that is being changed: its form is not there when the page begins.
  function editing() {
    const form = document.querySelector("#chat .editor");
    const run = form?.closest("[data-run]")?.dataset.run;
    return run ? { run, text: form.querySelector("textarea").value } : null;
  }

  // Where each conversation was left, unless at its end: one in a hidden tab does not say.
  const places = new Map();
  document.addEventListener("scroll", ({ target: box }) => {
    if (!box.matches?.(".live") || !box.clientHeight) return;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < 40) places.delete(path(box));
    else places.set(path(box), box.scrollTop);
  }, true);

  function found() {
    const fields = [...document.querySelectorAll(FIELDS)].filter((field) => !field.matches(ELSEWHERE) && changed(field));
    return {
      fields: fields.map((field) => [path(field), isBox(field) ? field.checked : field.value]),
      opened: [...document.querySelectorAll("details[id]")].map((details) => [details.id, details.open]),
      scrolled: [...places],
      page: window.scrollY,
      editing: editing(),
    };
  }

  window.kimi.carry = () => {
    try { sessionStorage.setItem(KEY, JSON.stringify(found())); } catch { /* private mode: what is in forms is lost then */ }
  };

  // ---- putting it back ------------------------------------------------------------------------------------------------

  function taken() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(KEY));
      sessionStorage.removeItem(KEY);
      return kept;
    } catch { return null; }
  }

  function fill(field, value) {
    if (isBox(field)) {
      if (field.checked !== value) field.click();
      return;
    }
    window.kimi.write(field, value);
    field.dispatchEvent(new Event("change", { bubbles: true }));
  }

  // reach(): goes there, and answers whether that was all. A person who scrolls meanwhile has the last word.
  function scroll(element, reach) {
    const since = performance.now();
    let moved = false;
    for (const name of ["wheel", "touchmove", "keydown"]) element.addEventListener(name, () => { moved = true; }, { once: true, passive: true });
    const step = () => { if (!moved && performance.now() - since < WAIT_MS && !reach()) requestAnimationFrame(step); };
    step();
  }

  const carried = taken();
  if (!carried) return;
  const left = { fields: carried.fields, opened: carried.opened, scrolled: carried.scrolled };

  // Whatever has appeared by now; the rest when its tab is first shown. Not before Gradio has put its own values in.
  function put() {
    if (!document.documentElement.hasAttribute("data-restored")) return;
    left.opened = left.opened.filter(([id, open]) => {
      const details = document.getElementById(id);
      if (details && details.open !== open) details.querySelector(":scope > summary")?.click();
      return !details;
    });
    left.fields = left.fields.filter(([where, value]) => {
      const field = document.querySelector(where);
      if (field) fill(field, value);
      return !field;
    });
    edit();
    if (!left.fields.length && !left.opened.length && !left.scrolled.length && !carried.editing) watching.disconnect();
  }

  // The first conversation may have come before this script.
  document.addEventListener("kimi:start", back);

  // A message being changed. It may be drawn anew once more while the page comes up, so this holds until it has settled.
  function edit() {
    const { editing } = carried;
    const button = editing && document.querySelector(`#chat [data-edit="${editing.run}"]`);
    if (!button || document.querySelector("#chat .editor")) return;
    button.click();
    const field = document.querySelector("#chat .editor textarea");
    if (!field) return;
    field.value = editing.text;
    setTimeout(() => { carried.editing = null; }, SETTLE_MS);
  }

  function back() {
    edit();
    left.scrolled = left.scrolled.filter(([where, top]) => {
      const box = document.querySelector(where);
      if (!box?.querySelector("[data-run]")) return true;
      window.kimi.whenSeen(box, () => {
        const until = performance.now() + SETTLE_MS;
        scroll(box, () => { box.scrollTop = top; return performance.now() > until; });
      });
      return false;
    });
  }

  const watching = new MutationObserver(put);
  watching.observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["data-restored"] });
  scroll(document, () => {
    if (document.documentElement.scrollHeight - window.innerHeight < carried.page) return false;
    window.scrollTo(0, carried.page);
    return true;
  });
  put();
  back();
})();
