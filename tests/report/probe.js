// Opens page.html in a frame as narrow as a phone, uses it as a reader would, and leaves what it saw in #result.
"use strict";

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

function cells(panel) {
  return [...panel.querySelectorAll(".map td")].map((cell) => ({
    layer: Number(cell.dataset.layer), head: Number(cell.dataset.head),
    value: cell.dataset.value === undefined ? null : Number(cell.dataset.value), text: cell.textContent}));
}

async function maps(panel, page) {
  const select = panel.querySelector(".map") && panel.querySelector("select");
  const seen = {};
  for (const option of select ? select.options : []) {
    select.value = option.value;
    select.dispatchEvent(new page.Event("change"));
    seen[option.value] = cells(panel);
  }
  return seen;
}

async function tables(panel) {
  const details = panel.querySelector("details.all-heads");
  if (!details) return null;
  details.open = true;
  await pause(50);
  return {
    names: details.dataset.names.split(" "),
    rows: [...details.querySelectorAll("tbody tr")].map((row) => [...row.cells].map((cell) =>
        cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value))),
  };
}

function attention(panel) {
  return [...panel.querySelectorAll(".thumb")].map((button) => {
    button.click();
    return {pressed: button.getAttribute("aria-pressed"), said: panel.querySelector(".said").textContent,
            words: [...panel.querySelectorAll(".word")].map((word) => word.textContent)};
  });
}

// The number of pixels that are not like the first: 0 is an empty picture.
function drawn(canvas) {
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  let other = 0;
  for (let i = 0; i < data.length; i += 4) other += data[i] !== data[0] || data[i + 3] !== data[3] ? 1 : 0;
  return other;
}

function canvases(panel) {
  return [...panel.querySelectorAll(".canvas > canvas, canvas.large")].map((canvas) => ({
    drawn: drawn(canvas), width: canvas.clientWidth, room: canvas.parentElement.clientWidth}));
}

async function look(frame) {
  const page = frame.contentWindow, {document} = page, root = document.documentElement;
  const seen = {drawn: root.dataset.drawn, title: document.title, theme: root.dataset.theme, panels: []};
  const tabs = [...document.querySelectorAll("[role=tab]")];
  for (const panel of document.querySelectorAll(".panel")) {
    if (tabs.length > 0) tabs[seen.panels.length].click();
    await pause(200);
    const h75 = panel.querySelector("[data-number=h75]");
    const number = (name) => Number(panel.querySelector("[data-number=" + name + "]")?.dataset.value ?? NaN);
    seen.panels.push({
      heading: panel.querySelector("h2").textContent, h75: h75 && Number(h75.dataset.value),
      h75_text: h75 && h75.textContent, facts: panel.querySelector(".facts")?.innerText, spread: number("spread"), maps: await maps(panel, page),
      table: await tables(panel), attention: attention(panel), canvases: canvases(panel), width: root.scrollWidth,
    });
  }
  document.getElementById("theme").click();
  await pause(100);
  seen.other_theme = root.dataset.theme;
  document.querySelector("[data-term=entropy_ratio]").dispatchEvent(new page.PointerEvent("pointerover", {bubbles: true}));
  seen.tip = document.getElementById("tip").textContent;
  seen.room = root.clientWidth;
  seen.images = document.images.length;
  seen.scripts = document.scripts.length;
  seen.faults = root.dataset.faults || "";
  return seen;
}

window.addEventListener("load", async () => {
  await pause(300);
  let result;
  try {
    result = await look(document.querySelector("iframe"));
  } catch (error) {
    result = {faults: "probe: " + error.stack};
  }
  document.getElementById("result").textContent = encodeURIComponent(JSON.stringify(result));
});
