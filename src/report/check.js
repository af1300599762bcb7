// Blocks of the page of `levelhead check`: the verdict with its level, the map of heads, the table of all numbers.
"use strict";

(() => {
  const {page, kinds, themed, el, words, term, short, setting, ramp, ink_on, table} = levelhead;

  // ---- the verdict
  /// What each rule judges, where it lies on the level from 0 to 1, and what is beyond the limits.
  const rules = {
    h75: {number: "h75", label: "H75", place: (x) => x, left: "too sharp", right: "too flat"},
    fresh: {number: "spread", label: "The median spread", place: (x) => 0.5 + Math.log2(Math.max(x, 1e-9)) / 1.6,
            left: "too flat", right: "too sharp"},
  };

  /// The number as the bubble of a spirit level.
  function spirit_level(verdict) {
    const rule = rules[verdict.rule], [low, high] = verdict.limits, value = verdict[rule.number];
    const percent = (x) => 100 * Math.max(0, Math.min(1, x)) + "%";
    const at = (class_name, x, ...children) => {
      const element = el("div", {class: class_name}, ...children);
      element.style.left = percent(x);
      return element;
    };
    const zone = el("div", {class: "zone"});
    const [from, to, now] = [low, high, value].map(rule.place);
    const beside = now < 0.05 ? "left" : now > 0.95 ? "right" : "middle";  // so that the number stays on the page
    zone.style.left = percent(from);
    zone.style.width = percent(to - from);
    return el("div", {class: "level", role: "img",
                      "aria-label": rule.label + " is " + short(value) + "; level lies between " + low + " and " + high},
              el("div", {class: "ends"}, at("left", 0, rule.left), at("middle", (from + to) / 2, "level"),
                 at("right", 1, rule.right)),
              el("div", {class: "tube"}, zone, at("limit", from), at("limit", to), at("bubble", now)),
              el("div", {class: "marks"}, at("middle", from, low.toFixed(2)), at("middle", to, high.toFixed(2)),
                 at(beside + " now", now, el("b", {"data-number": rule.number, "data-value": value}, short(value)))));
  }

  kinds.verdict = (block) => {
    const {verdict} = block;
    const mistake = verdict.likely_mistake === null ? null : el("p", {class: "mistake"}, "Likely mistake: the scale is ",
                                                                el("b", {}, verdict.likely_mistake));
    const reason = ["broken", "undecided"].includes(verdict.name) ? el("p", {}, verdict.reason, ".") : null;
    return el("div", {class: "verdict", "data-verdict": verdict.name},
              el("h2", {}, block.title, block.from ? el("small", {}, " (" + block.from + ")") : null),
              el("p", {}, words(block.meaning)), reason, mistake,
              verdict[rules[verdict.rule].number] === null ? null : spirit_level(verdict),
              el("p", {}, words(block.evidence)), el("p", {class: "limits"}, words(block.intro)),
              el("p", {}, el("b", {}, "Next: "), words(block.next)),
              el("p", {class: "limits"}, el("b", {}, "How far to trust it: "), words(block.limits)),
              el("p", {class: "facts"}, block.model ? el("b", {}, block.model) : null, block.model ? el("br") : null,
                 block.file, el("br"), block.facts, el("br"), block.scale));
  };

  // ---- the map
  // ".73", "1.2", "13": two digits, so that a cell of a phone holds it.
  function tiny(x) {
    if (typeof x !== "number") return "";
    const size = Math.abs(x);
    if (size < 0.995) return x.toFixed(2).replace("0.", ".");
    return x.toFixed(size < 9.95 ? 1 : 0);
  }

  const heads_of = (layers) => layers.flatMap(({layer, heads}) => heads.map((head) => ({layer, ...head})));
  const name_of = ({layer, head}) => "layer " + layer + ", head " + head;

  function facts_of(chosen, quantities) {
    const flags = chosen.flags.flatMap((flag, i) => [i > 0 ? ", " : " is ", term(flag)]);
    const rows = [...quantities.map(({name}) => name), "effective_keys", "top1"].map((name) =>
        el("div", {}, el("dt", {}, term(name)), el("dd", {}, short(chosen[name]))));
    return [el("p", {}, el("b", {}, name_of(chosen)), flags), el("dl", {class: "facts-of"}, rows)];
  }

  /// A walk through the cells by arrow keys; one cell at a time is in the tab order.
  function walk(cells, act) {
    let current = null;
    const choose = (cell) => {
      if (current) current.tabIndex = -1, current.classList.remove("chosen");
      current = cell;
      cell.tabIndex = 0;
      cell.classList.add("chosen");
      act(cell);
    };
    cells.forEach((row, r) => row.forEach((cell, c) => {
      cell.tabIndex = -1;
      cell.addEventListener("pointerenter", () => choose(cell));
      cell.addEventListener("focus", () => choose(cell));
      cell.addEventListener("keydown", (event) => {
        const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
        const next = step && cells[r + step[0]] && cells[r + step[0]][c + step[1]];
        if (!next) return;
        event.preventDefault();
        next.focus();
      });
    }));
    if (cells[0] && cells[0][0]) choose(cells[0][0]);
  }

  function extremes(all, name) {
    const known = all.filter((head) => typeof head[name] === "number").sort((a, b) => a[name] - b[name]);
    if (known.length < 2) return "";
    const [low, high] = [known[0], known[known.length - 1]];
    return " Here it runs from " + short(low[name]) + " (" + name_of(low) + ") to " + short(high[name]) + " (" + name_of(high) + ").";
  }

  /// The 95th percentile: a single outlier should not take the colours from all others.
  function most_of(values) {
    const sorted = [...values].sort((a, b) => a - b);
    return sorted.length > 0 ? sorted[Math.floor(0.95 * (sorted.length - 1))] : 0;
  }

  kinds.head_map = (block) => {
    const {layers} = page.data[block.capture];
    const all = heads_of(layers);
    const widest = Math.max(0, ...layers.map(({heads}) => heads.length));
    const select = el("select", {"aria-label": "quantity"}, block.quantities.map(({name}) =>
        el("option", {value: name}, page.definitions[name].label)));
    const asked = setting("stat");
    if (block.quantities.some(({name}) => name === asked)) select.value = asked;
    const says = el("figcaption", {class: "says"});
    const [from, to] = [el("span", {}, "0"), el("span")];
    const explain = el("span");
    const panel = el("div", {class: "chosen-head", "aria-live": "polite"});
    const cells = layers.map(({layer, heads}) => heads.map((head) => {
      const cell = el("td", {role: "gridcell", "data-layer": layer, "data-head": head.head});
      cell.head = {layer, ...head};
      return cell;
    }));
    const fill = () => {
      const chosen = block.quantities.find(({name}) => name === select.value);
      const values = all.map((head) => head[chosen.name]).filter((x) => typeof x === "number");
      const full = chosen.full === null ? Math.max(1e-9, most_of(values)) : chosen.full;
      says.textContent = chosen.says + extremes(all, chosen.name);
      explain.replaceChildren(term(chosen.name, "what is this?"));
      to.textContent = (Math.max(0, ...values) > full ? "≥ " : "") + short(full);
      for (const cell of cells.flat()) {
        const value = cell.head[chosen.name];
        const known = typeof value === "number";
        cell.textContent = tiny(value);
        cell.setAttribute("aria-label", name_of(cell.head) + ": " + short(value));
        if (known) cell.dataset.value = value;
        else delete cell.dataset.value;
        const colours = known ? ramp(value / full) : null;
        cell.style.background = colours ? "rgb(" + colours.join(",") + ")" : "transparent";
        cell.style.color = colours ? ink_on(colours) : "inherit";
      }
    };
    select.addEventListener("change", fill);
    themed.push(fill);
    fill();
    walk(cells, (cell) => panel.replaceChildren(...facts_of(cell.head, block.quantities)));
    const numbers = [...Array(widest).keys()].map((i) => layers.find(({heads}) => heads[i]).heads[i].head);
    const grid = el("table", {class: "map" + (widest > 16 ? " many" : ""), role: "grid", "aria-label": "map of heads"},
                    el("thead", {}, el("tr", {}, el("th", {class: "corner"}, "layer"), numbers.map((i) => el("th", {scope: "col"}, i)))),
                    el("tbody", {}, layers.map(({layer}, r) => el("tr", {}, el("th", {scope: "row"}, layer), cells[r]))));
    return el("figure", {}, el("div", {class: "controls"}, el("label", {}, "Show ", select), explain,
                               el("span", {class: "ramp-key"}, from, el("i"), to)),
              says, el("div", {class: "scroll"}, grid), panel);
  };

  // ---- all numbers
  kinds.heads = (block) => {
    const {layers} = page.data[block.capture];
    const names = [...new Set(heads_of(layers).flatMap((head) => Object.keys(head)))].filter((name) => name !== "flags");
    const rows = () => heads_of(layers).map((head) =>
        [...names.map((name) => (head[name] === undefined ? null : head[name])), head.flags.join(" ")]);
    const label = (name) => (page.definitions[name] && name !== "head" ? page.definitions[name].label : name);
    const made = table("Every head and every statistic", [...names.map(label), "flags"], rows, true);
    made.classList.add("all-heads");
    made.dataset.names = names.join(" ");
    return made;
  };
})();
