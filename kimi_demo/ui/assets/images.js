// Images for the next message: chosen, pasted or dropped; made smaller here where they are large, judged by the server.
(() => {
  "use strict";

  const picker = () => document.getElementById("chat-picker");
  const button = () => picker()?.querySelector("[data-pick-image]");
  const strip = () => document.querySelector("#chat-attachments .attachments");
  const UNTOUCHED = 4e6; // bytes up to which an image that is not too wide or high is sent as it is

  function busy(name) {
    const box = picker()?.querySelector(".picking");
    if (box) box.textContent = name ? box.dataset[name] : "";
  }

  function show(html) {
    const box = strip();
    if (box && box.dataset.shown !== html) { box.innerHTML = html; box.dataset.shown = html; }
  }

  async function refresh() {
    const answer = await fetch("kimi/images", { cache: "no-store" });
    if (answer.ok) show((await answer.json()).html);
  }

  async function told(answer) {
    const text = await answer.text();
    try { return JSON.parse(text).html; }
    catch { return Object.assign(document.createElement("div"), { className: "notice", textContent: text }).outerHTML; }
  }

  // Whether the model sees is asked when somebody first wants to show it something.
  async function sees() {
    busy("asking");
    const answer = await fetch("kimi/images/sight", { cache: "no-store" });
    busy("");
    if (answer.ok) { button()?.removeAttribute("data-off"); return true; }
    button()?.setAttribute("data-off", "");
    window.kimi.notice("chat", await told(answer));
    return false;
  }

  async function smaller(file) {
    const side = Number(button()?.dataset.side) || 2048;
    try {
      const bitmap = await createImageBitmap(file);
      const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
      if (scale === 1 && file.size <= UNTOUCHED) return file;
      const canvas = Object.assign(document.createElement("canvas"), { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
      canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const png = file.type === "image/png" && (await blob(canvas, "image/png"));
      return png && png.size <= UNTOUCHED ? png : await blob(canvas, "image/jpeg", 0.9);
    } catch {
      return file; // no image for this browser: the server says what it is
    }
  }

  const blob = (canvas, type, quality) => new Promise((resolve, reject) => canvas.toBlob((made) => (made ? resolve(made) : reject(new Error(type))), type, quality));

  let line = Promise.resolve(); // one after the other, so that they stay in order
  function take(files) {
    line = line.then(async () => {
      window.kimi.notice("chat", "");
      for (const file of files) {
        const video = file.type.startsWith("video/");
        if (!video && !(await sees())) return;
        busy("reading");
        const body = video ? "" : await smaller(file);
        const answer = await fetch("kimi/images", { method: "POST", headers: { "content-type": video ? file.type : "application/octet-stream" }, body });
        busy("");
        if (answer.ok) show((await answer.json()).html);
        else window.kimi.notice("chat", await told(answer));
      }
    }).catch(() => busy(""));
  }

  document.addEventListener("click", async (event) => {
    if (event.target.closest("[data-pick-image]")) {
      if (button().dataset.off === undefined && button().dataset.asked) picker().querySelector("input").click();
      else if (await sees()) { button().dataset.asked = "1"; picker().querySelector("input").click(); }
    }
    const remove = event.target.closest("[data-remove-image]");
    if (remove) {
      const answer = await fetch(`kimi/images/${remove.dataset.removeImage}`, { method: "DELETE" });
      if (answer.ok) show((await answer.json()).html);
      document.querySelector("#chat-input textarea")?.focus();
    }
  });

  document.addEventListener("change", (event) => {
    if (!event.target.matches("#chat-picker input")) return;
    take([...event.target.files]);
    event.target.value = "";
  });

  const chatShown = () => document.querySelector("#chat .live")?.offsetParent;
  const isMedia = (file) => /^(image|video)\//.test(file.type);

  document.addEventListener("paste", (event) => {
    const files = [...(event.clipboardData?.files || [])].filter(isMedia);
    // A table copied from a spreadsheet comes as text and as a picture of it: the text is meant.
    if (!files.length || !chatShown() || event.clipboardData.getData("text/plain")) return;
    event.preventDefault();
    event.stopPropagation();
    take(files);
  }, true);

  const dragged = (event) => chatShown() && [...(event.dataTransfer?.types || [])].includes("Files");
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => {
      if (!dragged(event)) return;
      event.preventDefault();
      document.getElementById("tab-chat")?.classList.add("dropping");
    }, true);
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.getElementById("tab-chat")?.classList.remove("dropping"); });
  document.addEventListener("drop", (event) => {
    if (!dragged(event)) return;
    event.preventDefault();
    event.stopPropagation();
    document.getElementById("tab-chat")?.classList.remove("dropping");
    take([...event.dataTransfer.files]);
  }, true);

  document.addEventListener("kimi:start", ({ detail }) => { if (detail.kind === "chat") refresh(); });
  document.addEventListener("kimi:sent", refresh);
  document.addEventListener("kimi:act", ({ detail }) => { if (detail.act === "chat_unqueue") refresh(); });
})();
