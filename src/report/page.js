// The shell of a page: draws the blocks of the JSON element by their kinds. Text becomes text nodes, never HTML.
"use strict";

const levelhead = (() => {
  const root = document.documentElement;
  const faults = [];

  // What goes wrong is shown to the reader, and found by tests in the attribute.
  function fault(message) {
    faults.push(String(message));
    root.dataset.faults = faults.join("; ");
    const note = document.getElementById("faults") || document.createElement("p");
    note.id = "faults";
    note.textContent = "This page failed to draw itself completely: " + root.dataset.faults;
    document.body.prepend(note);
  }
  window.addEventListener("error", (event) => fault(event.message));
  window.addEventListener("unhandledrejection", (event) => fault(event.reason));
  document.addEventListener("securitypolicyviolation", (event) => fault("blocked " + event.violatedDirective));

  const page = JSON.parse(document.getElementById("page").textContent);
  const kinds = {};   // kind of block -> (block, panel) => element
  const themed = [];  // called when the colours have changed

  /// An element; children are elements or text, null is left out.
  function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes))
      if (value !== null && value !== undefined) element.setAttribute(name, value);
    element.append(...children.flat().filter((child) => child !== null && child !== undefined));
    return element;
  }

  // ---- words: `code` and [label](term)
  function term(name, label) {
    const known = page.definitions[name];
    if (!known) return document.createTextNode(label || name);
    return el("span", {class: "term", tabindex: "0", "data-term": name}, label || known.label);
  }

  function words(text) {
    const parts = [];
    let rest = 0;
    for (const found of text.matchAll(/`([^`]+)`|\[([^\]]+)\]\((\w+)\)/g)) {
      parts.push(text.slice(rest, found.index));
      parts.push(found[1] ? el("code", {}, found[1]) : term(found[3], found[2]));
      rest = found.index + found[0].length;
    }
    parts.push(text.slice(rest));
    return parts;
  }

  /// Words without their marks.
  function plain(text) { return text.replace(/`([^`]+)`|\[([^\]]+)\]\(\w+\)/g, "$1$2"); }

  function start_tips() {
    const tip = el("div", {id: "tip", role: "tooltip", hidden: ""});
    document.body.append(tip);
    const hide = () => { tip.hidden = true; };
    const show = (target) => {
      const definition = page.definitions[target.dataset.term];
      tip.replaceChildren(el("b", {}, definition.label), " ", definition.text);
      tip.hidden = false;
      target.setAttribute("aria-describedby", "tip");
      const box = target.getBoundingClientRect();
      const left = Math.max(8, Math.min(box.left, root.clientWidth - tip.offsetWidth - 8));
      const below = box.bottom + 6 + tip.offsetHeight < window.innerHeight || box.top < tip.offsetHeight + 6;
      tip.style.left = left + window.scrollX + "px";
      tip.style.top = (below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + window.scrollY + "px";
    };
    const on_term = (act) => (event) => {
      const target = event.target.closest ? event.target.closest("[data-term]") : null;
      if (target) act(target);
    };
    document.addEventListener("pointerover", on_term(show));
    document.addEventListener("focusin", on_term(show));
    document.addEventListener("pointerout", on_term(hide));
    document.addEventListener("focusout", on_term(hide));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });
  }

  // ---- numbers
  /// Short for reading: 3 significant digits; what is absent or not finite is a dash.
  function short(x) {
    if (typeof x !== "number") return "–";
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-3 || size >= 1e6)) return x.toExponential(1);
    if (Number.isInteger(x) || size >= 1000) return x.toFixed(0);
    return x.toFixed(size < 1 ? 3 : size < 10 ? 2 : 1);
  }

  // ---- the address' fragment: #dark&tab=2&stat=z
  function setting(name) {
    for (const part of location.hash.slice(1).split("&")) {
      const [key, value] = part.split("=");
      if (key === name) return value === undefined ? "" : decodeURIComponent(value);
    }
    return null;
  }

  // ---- colours
  function colour(name) { return getComputedStyle(root).getPropertyValue("--" + name).trim(); }

  function hex(text) { return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)); }

  /// t from 0 to 1 on the page's ramp, which changes in lightness alone, as [red, green, blue].
  function ramp(t) {
    const stops = [0, 1, 2, 3].map((i) => hex(colour("ramp-" + i)));
    const place = Math.max(0, Math.min(1, t)) * 3;
    const low = Math.min(2, Math.floor(place));
    return [0, 1, 2].map((c) => Math.round(stops[low][c] + (stops[low + 1][c] - stops[low][c]) * (place - low)));
  }

  /// Black or white, whichever can be read on it.
  function ink_on(rgb) {
    const light = [0.2126, 0.7152, 0.0722].reduce((sum, share, c) => sum + share * (rgb[c] / 255) ** 2.2, 0);
    return light > 0.18 ? "#000000" : "#ffffff";
  }

  function set_theme(name) {
    root.dataset.theme = name;
    for (const act of themed) act();
  }

  function theme_button() {
    const dark = window.matchMedia("(prefers-color-scheme: dark)");
    const chosen = setting("dark") !== null ? "dark" : setting("light") !== null ? "light" : null;
    root.dataset.theme = chosen || (dark.matches ? "dark" : "light");
    const button = el("button", {type: "button", id: "theme"});
    const label = () => { button.textContent = root.dataset.theme === "dark" ? "Light" : "Dark"; };
    button.addEventListener("click", () => set_theme(root.dataset.theme === "dark" ? "light" : "dark"));
    dark.addEventListener("change", () => { if (!chosen) set_theme(dark.matches ? "dark" : "light"); });
    themed.push(label);
    label();
    return button;
  }

  // ---- tabs and sections
  /// A panel draws what needs its size when it is first shown.
  function make_panel(tab, number) {
    const element = el("div", {id: "panel-" + number, class: "panel"});
    const waiting = [];
    const panel = {number, element, shown: (act) => waiting.push(act)};
    for (const section of tab.sections) {
      const box = el("section", {}, section.title ? el("h2", {}, section.title) : null,
                     section.lead ? el("p", {class: "lead"}, words(section.lead)) : null);
      for (const block of section.blocks) box.append(kinds[block.kind](block, panel));
      element.append(box);
    }
    panel.show = (visible) => {
      element.hidden = !visible;
      if (visible) for (const act of waiting.splice(0)) act();
    };
    return panel;
  }

  function make_tabs(panels) {
    const list = el("div", {role: "tablist"});
    const buttons = panels.map((panel, i) => el("button", {type: "button", role: "tab", id: "tab-" + i,
                                                "aria-controls": "panel-" + i}, page.tabs[i].title));
    const choose = (chosen) => {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", i === chosen);
        button.tabIndex = i === chosen ? 0 : -1;
      });
      panels.forEach((panel, i) => panel.show(i === chosen));
    };
    buttons.forEach((button, i) => {
      panels[i].element.setAttribute("role", "tabpanel");
      panels[i].element.setAttribute("aria-labelledby", "tab-" + i);
      button.addEventListener("click", () => choose(i));
      button.addEventListener("keydown", (event) => {
        const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
        if (!step) return;
        const next = (i + step + buttons.length) % buttons.length;
        choose(next);
        buttons[next].focus();
      });
    });
    list.append(...buttons);
    return {list, choose};
  }

  function glossary() {
    const entries = Object.values(page.definitions);
    if (entries.length === 0) return null;
    return el("details", {id: "glossary"}, el("summary", {}, "Every word and number on this page"),
              el("dl", {}, entries.flatMap(({label, text}) => [el("dt", {}, label), el("dd", {}, text)])));
  }

  function draw() {
    const header = el("header", {}, el("div", {}, el("h1", {}, page.title),
                      page.lead ? el("p", {class: "lead"}, words(page.lead)) : null), theme_button());
    const panels = page.tabs.map(make_panel);
    const main = el("main", {}, panels.map((panel) => panel.element));
    const footer = el("footer", {}, glossary(), page.foot ? el("p", {}, words(page.foot)) : null,
                      el("p", {}, "Made by levelhead " + page.version + ". Charts by Chart.js " + Chart.version +
                                  " (MIT). This file loads nothing from anywhere."));
    document.body.append(header, main, footer);
    start_tips();
    if (panels.length > 1) {
      const tabs = make_tabs(panels);
      main.before(tabs.list);
      tabs.choose(Math.min(panels.length, Math.max(1, Number(setting("tab")) || 1)) - 1);
    } else {
      panels.forEach((panel) => panel.show(true));
    }
    root.dataset.drawn = "true";
  }
  document.addEventListener("DOMContentLoaded", draw);

  // ---- plain kinds
  kinds.words = (block) => el("p", {}, words(block.text));

  function cell(value) {
    const number = typeof value === "number";
    return el("td", number ? {class: "number", "data-value": value} : {}, value === null || number ? short(value) : value);
  }

  /// rows are asked for when the table is first opened, or now when it is not folded.
  function table(title, columns, rows, folded) {
    const body = el("tbody");
    const fill = () => { if (!body.hasChildNodes()) body.append(...rows().map((row) => el("tr", {}, row.map(cell)))); };
    const whole = el("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title},
                     el("table", {}, el("thead", {}, el("tr", {}, columns.map((name) => el("th", {scope: "col"}, name)))),
                        body));
    if (!folded) {
      fill();
      return el("figure", {}, title ? el("figcaption", {}, title) : null, whole);
    }
    const details = el("details", {class: "numbers"}, el("summary", {}, title), whole);
    details.addEventListener("toggle", fill);
    return details;
  }
  kinds.table = (block) => table(block.title, block.columns, () => block.rows, block.folded);

  return {page, kinds, themed, el, words, plain, term, short, setting, colour, ramp, ink_on, table};
})();
