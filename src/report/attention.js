// Blocks of kind "attention": heads as small pictures; the chosen one large, with its words, and as coloured text.
"use strict";

(() => {
  const {kinds, themed, el, plain, colour, ramp, ink_on} = levelhead;

  /// Weights travel as bytes of 255 sqrt(p): share is sqrt(p), which also sets the colour, weight is p.
  function decode(picture, rows, keys) {
    const bytes = Uint8Array.from(atob(picture.weights), (c) => c.charCodeAt(0));
    const share = (i, j) => bytes[i * keys + j] / 255;
    return {...picture, rows, keys, share, weight: (i, j) => share(i, j) ** 2};
  }

  const name_of = (names, i) => (names.length > i ? names[i].trim() || "␠" : String(i));

  /// One pixel a cell; what a larger canvas is scaled up from.
  function pixels(head) {
    const canvas = el("canvas", {width: head.keys, height: head.rows});
    const image = new ImageData(head.keys, head.rows);
    const colours = [...Array(256).keys()].map((value) => ramp(value / 255));
    for (let i = 0; i < head.rows; ++i)
      for (let j = 0; j < head.keys; ++j)
        image.data.set([...colours[Math.round(255 * head.share(i, j))], 255], 4 * (i * head.keys + j));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  function thumbnail(head, choose) {
    const picture = el("span", {class: "picture"});
    const paint = () => picture.replaceChildren(pixels(head));
    themed.push(paint);
    paint();
    const button = el("button", {type: "button", class: "thumb", "aria-pressed": "false"}, picture,
                      el("span", {}, el("b", {}, "layer " + head.layer + ", head " + head.head), el("br"),
                         plain(head.why)));
    button.addEventListener("click", () => choose(head, button));
    return button;
  }

  const font = () => "11px " + Chart.defaults.font.family;
  const cut = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name);

  /// Room that the names of one side need, within bounds.
  function room(context, names, count, most) {
    context.font = font();
    const widths = [...Array(count).keys()].map((i) => context.measureText(cut(name_of(names, i))).width);
    return Math.min(most, Math.max(...widths)) + 10;
  }

  /// The geometry of the large picture: square cells, words on both sides, as many as are legible.
  function layout(head, names, width) {
    const context = document.createElement("canvas").getContext("2d");
    const left = room(context, names.rows, head.rows, Math.max(60, width * 0.12));
    const top = room(context, names.keys, head.keys, 90);
    const cell = Math.max(1, Math.min(16, (width - left - 2) / head.keys, 620 / head.rows));
    return {left, top, cell, width, height: top + cell * head.rows + 2, step: Math.max(1, Math.ceil(11 / cell))};
  }

  /// Every step-th name and the chosen one, along an axis that runs downwards.
  function draw_names(context, names, count, chosen, {cell, step}, sign, most) {
    context.font = font();
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (let i = 0; i < count; ++i) {
      if (i !== chosen && (i % step !== 0 || Math.abs(i - chosen) < step)) continue;
      context.fillStyle = i === chosen ? colour("accent") : colour("ink-soft");
      context.fillText(cut(name_of(names, i)), -5, sign * (i + 0.5) * cell, most);
    }
  }

  function draw_large(canvas, head, names, chosen, width) {
    const place = layout(head, names, width);
    const {left, top, cell, height} = place;
    const sharp = window.devicePixelRatio || 1;
    canvas.width = width * sharp;
    canvas.height = height * sharp;
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const context = canvas.getContext("2d");
    context.scale(sharp, sharp);
    context.imageSmoothingEnabled = false;
    context.translate(left, top);
    context.drawImage(pixels(head), 0, 0, cell * head.keys, cell * head.rows);
    context.strokeStyle = colour("line");
    context.strokeRect(-0.5, -0.5, cell * head.keys + 1, cell * head.rows + 1);
    context.strokeStyle = colour("mark");
    context.strokeRect(-0.5, chosen.i * cell - 0.5, cell * head.keys + 1, cell + 1);
    context.strokeRect(chosen.j * cell - 0.5, chosen.i * cell - 0.5, cell + 1, cell + 1);
    draw_names(context, names.rows, head.rows, chosen.i, place, 1, left - 8);
    context.rotate(Math.PI / 2);
    draw_names(context, names.keys, head.keys, chosen.j, place, -1, top - 8);
  }

  /// The keys as running text, coloured by the weight that the chosen query gives them.
  function draw_text(box, head, names, chosen, choose) {
    // Some tokenizers keep the spaces in their tokens, others leave them out.
    const spaced = names.keys.some((name) => /^[ \u0120\u2581]/.test(name));
    const gap = (j) => (spaced || j === 0 || (names.keys[j] || "").startsWith("##") ? "" : " ");
    box.replaceChildren(...[...Array(head.keys).keys()].flatMap((j) => {
      const own = head.rows === head.keys && j === chosen.i;
      const colours = ramp(head.share(chosen.i, j));
      const word = el("span", {class: own ? "word own" : "word", title: percent(head.weight(chosen.i, j))},
                      names.keys.length > j ? names.keys[j] : j);
      word.style.background = "rgb(" + colours.join(",") + ")";
      word.style.color = ink_on(colours);
      if (j < head.rows) word.addEventListener("click", () => choose({i: j, j: chosen.j}));
      return [gap(j), word];
    }));
  }

  function strongest(head, i) {
    let best = 0;
    for (let j = 1; j < head.keys; ++j) if (head.share(i, j) > head.share(i, best)) best = j;
    return best;
  }

  const percent = (weight) => (100 * weight).toFixed(weight < 0.0995 ? 1 : 0) + " %";

  function sentence(head, names, {i, j}) {
    const best = strongest(head, i);
    const quoted = (kind, at) => "“" + name_of(kind, at) + "”";
    const most = best === j ? "more than to any other" : "most goes to " + quoted(names.keys, best) + " (" + percent(head.weight(i, best)) + ")";
    return quoted(names.rows, i) + " (" + i + ") gives " + percent(head.weight(i, j)) + " of its weight to " +
           quoted(names.keys, j) + " (" + j + "); " + most + ".";
  }

  kinds.attention = (block, panel) => {
    const names = {rows: block.row_names, keys: block.key_names};
    const heads = block.heads.map((head) => decode(head, block.rows, block.keys));
    const canvas = el("canvas", {class: "large", tabindex: "0", role: "application",
                                 "aria-label": "attention map; arrow keys choose a query and a key"});
    const said = el("p", {class: "said", "aria-live": "polite"});
    const text = el("div", {class: "running-text"});
    const stage = el("div", {class: "stage"}, canvas);
    let head = heads[0];
    const last = Math.min(head.rows - 1, Math.floor(head.rows * 0.6));
    let chosen = {i: last, j: strongest(head, last)};

    const paint = () => {
      if (stage.clientWidth < 80) return;
      draw_large(canvas, head, names, chosen, stage.clientWidth);
      draw_text(text, head, names, chosen, choose);
      said.textContent = sentence(head, names, chosen);
    };
    function choose({i, j}) {
      chosen = {i: Math.max(0, Math.min(head.rows - 1, i)), j: Math.max(0, Math.min(head.keys - 1, j))};
      paint();
    }
    const buttons = heads.map((each) => thumbnail(each, (picked, own) => {
      head = picked;
      buttons.forEach((button) => button.setAttribute("aria-pressed", button === own));
      choose({i: chosen.i, j: strongest(head, chosen.i)});
    }));
    buttons[0].setAttribute("aria-pressed", "true");

    const at = (event) => {
      const {left, top, cell} = layout(head, names, stage.clientWidth);
      choose({i: Math.floor((event.offsetY - top) / cell), j: Math.floor((event.offsetX - left) / cell)});
    };
    canvas.addEventListener("pointermove", at);
    canvas.addEventListener("pointerdown", at);
    canvas.addEventListener("keydown", (event) => {
      const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
      if (!step) return;
      event.preventDefault();
      choose({i: chosen.i + step[0], j: chosen.j + step[1]});
    });
    themed.push(paint);
    panel.shown(() => {
      paint();
      // The height follows from the width, so only a new width counts; outside of the observer's own turn.
      let width = stage.clientWidth;
      window.addEventListener("resize", () => {
        if (stage.clientWidth !== width) width = stage.clientWidth, paint();
      });
    });
    return el("figure", {class: "attention"}, el("div", {class: "thumbs"}, buttons),
              el("p", {class: "says"}, "Point at the picture: the words it looks at light up in the text below. Colours show " +
                 "the square root of the weight, so that small weights are seen too; values are rounded to 8 bits."),
              el("div", {class: "controls"}, el("span", {class: "ramp-key"}, el("span", {}, "0"), el("i"), el("span", {}, "1"))),
              said, stage, text);
  };
})();
