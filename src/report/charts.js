// Blocks of kind "chart" and "bars": a plain description becomes a Chart.js chart with its sentence and its numbers.
"use strict";

(() => {
  const {kinds, themed, el, words, plain, short, colour, ramp, table} = levelhead;
  const rgb = (t) => "rgb(" + ramp(t).join(",") + ")";

  // Lines and bands across a chart, with their labels. Chart.js has none of its own.
  const mark_plugin = {
    id: "marks",
    beforeDatasetsDraw(chart, _, {marks}) {
      for (const mark of marks) if (mark.to !== undefined) draw_band(chart, mark);
    },
    afterDatasetsDraw(chart, _, {marks}) {
      for (const mark of marks) if (mark.to === undefined) draw_line(chart, mark);
      for (const mark of marks) draw_label(chart, mark);
    },
  };

  // Bars of error, drawn under the points.
  const error_plugin = {
    id: "errors",
    beforeDatasetsDraw(chart) {
      const {ctx, chartArea: area, scales: {x, y}} = chart;
      ctx.save();
      ctx.beginPath();
      ctx.rect(area.left, area.top, area.width, area.height);
      ctx.clip();
      chart.data.datasets.forEach(({data, pointBackgroundColor}, i) => {
        if (!chart.isDatasetVisible(i)) return;
        data.forEach((point, at) => {
          if (!point || typeof point.error !== "number") return;
          const place = x.getPixelForValue(point.x);
          ctx.strokeStyle = [pointBackgroundColor].flat()[Array.isArray(pointBackgroundColor) ? at : 0];
          ctx.beginPath();
          ctx.moveTo(place, y.getPixelForValue(point.y - point.error));
          ctx.lineTo(place, y.getPixelForValue(point.y + point.error));
          ctx.stroke();
        });
      });
      ctx.restore();
    },
  };

  function span(chart, mark) {
    const scale = chart.scales[mark.axis], {chartArea: area} = chart;
    const [low, high] = mark.axis === "x" ? [area.left, area.right] : [area.top, area.bottom];
    const place = (at) => Math.max(low, Math.min(high, scale.getPixelForValue(at)));
    return [place(mark.at), mark.to === undefined ? place(mark.at) : place(mark.to)].sort((a, b) => a - b);
  }

  function draw_band(chart, mark) {
    const {ctx, chartArea: area} = chart;
    const [from, to] = span(chart, mark);
    ctx.save();
    ctx.fillStyle = colour("band");
    if (mark.axis === "x") ctx.fillRect(from, area.top, to - from, area.height);
    else ctx.fillRect(area.left, from, area.width, to - from);
    ctx.restore();
  }

  function draw_line(chart, mark) {
    const {ctx, chartArea: area} = chart;
    const [at] = span(chart, mark);
    ctx.save();
    ctx.strokeStyle = colour("ink-soft");
    ctx.setLineDash([5, 4]);
    ctx.beginPath();
    if (mark.axis === "x") ctx.moveTo(at, area.top), ctx.lineTo(at, area.bottom);
    else ctx.moveTo(area.left, at), ctx.lineTo(area.right, at);
    ctx.stroke();
    ctx.restore();
  }

  function draw_label(chart, mark) {
    const {ctx, chartArea: area} = chart;
    const [from, to] = span(chart, mark);
    ctx.save();
    ctx.fillStyle = colour("ink-soft");
    ctx.font = "12px " + Chart.defaults.font.family;
    ctx.strokeStyle = colour("card");
    ctx.lineWidth = 3;
    const width = ctx.measureText(mark.label).width;
    const write = (x, y) => {
      ctx.strokeText(mark.label, x, y);  // a rim, so that lines under it leave it legible
      ctx.fillText(mark.label, x, y);
    };
    if (mark.axis === "x") {
      const right = from + 6 + width < area.right;
      ctx.textAlign = right ? "left" : "right";
      // Where it is narrow, labels of lines across y fill the top.
      write(right ? from + 6 : from - 6, area.width < 420 ? area.bottom - 8 : area.top + 14);
    } else {
      ctx.textAlign = "right";
      write(area.right - 6, mark.to !== undefined ? (from + to) / 2 + 4 : mark.below ? from + 15 : from - 5);
    }
    ctx.restore();
  }

  function scale(axis) {
    const made = {
      type: axis.log ? "logarithmic" : "linear",
      title: {display: Boolean(axis.title), text: axis.title, color: colour("ink")},
      grid: {color: colour("grid"), borderColor: colour("grid")},
      ticks: {color: colour("ink-soft"), maxTicksLimit: 8},
    };
    if (axis.min !== undefined) made.min = axis.min;
    if (axis.max !== undefined) made.max = axis.max;
    if (axis.ticks) {
      made.afterBuildTicks = (own) => { own.ticks = axis.ticks.map(({at}) => ({value: at})); };
      made.ticks.autoSkip = false;
      made.ticks.callback = (value) => (axis.ticks.find(({at}) => at === value) || {label: ""}).label;
    } else if (axis.log) {
      made.ticks.callback = (value) => (Number.isInteger(Math.log10(value)) ? short(value) : "");
    }
    return made;
  }

  function look(series, i) {
    const own = colour("series-" + (i % 6));
    const points = series.style === "points";
    const colours = points ? series.points.map(({shade}) => (typeof shade === "number" ? rgb(shade) : own)) : own;
    return {
      showLine: !points,
      borderColor: points ? colour("ink-soft") : own,
      borderWidth: points ? 0.75 : 2,
      borderDash: series.style === "dashed" ? [6, 5] : [],
      backgroundColor: colours,
      pointBackgroundColor: colours,
      pointRadius: points ? 4.5 : series.style === "dashed" ? 0 : 2.5,
      pointHoverRadius: points ? 7 : 4,
      tension: 0,
    };
  }

  /// Points keep their own x for all that is said of them; only where they are drawn is moved aside.
  function drawn(point, axis) {
    if (!point.aside) return point;
    const moved = axis.log ? point.x * (axis.max / axis.min) ** point.aside : point.x + (axis.max - axis.min) * point.aside;
    return {...point, x: moved, own_x: point.x};
  }

  function points_config(block) {
    return {
      type: "scatter",
      data: {datasets: block.series.map((series, i) => ({
        label: series.name, data: series.points.map((point) => drawn(point, block.x)), ...look(series, i)}))},
      options: {scales: {x: scale(block.x), y: scale(block.y)}},
    };
  }

  function bars_config(block) {
    return {
      type: "bar",
      data: {
        labels: block.labels,
        datasets: block.series.map((series, i) => ({label: series.name, data: series.values,
                                                    backgroundColor: colour("series-" + (i % 6))})),
      },
      options: {scales: {x: {grid: {display: false}, ticks: {color: colour("ink-soft")}}, y: scale(block.y)}},
    };
  }

  function tooltip_label(context) {
    const {raw, dataset} = context;
    if (typeof raw === "number") return dataset.label + ": " + short(raw);
    return (raw.label || dataset.label) + ": " + short(raw.own_x === undefined ? raw.x : raw.own_x) + ", " + short(raw.y);
  }

  function legend_labels(block) {
    const styles = block.series.map(({style}) => (style === "points" ? "circle" : style ? "line" : "rect"));
    const named = (chart) => Chart.defaults.plugins.legend.labels.generateLabels(chart).map((label) => ({
      ...label, pointStyle: styles[label.datasetIndex]}));
    return {color: colour("ink"), usePointStyle: true, boxHeight: 8, generateLabels: named};
  }

  function shared(config, block) {
    Object.assign(config.options, {
      responsive: true, maintainAspectRatio: false, animation: false,
      interaction: {mode: "nearest", intersect: true},
      plugins: {
        marks: {marks: block.marks},
        legend: {display: block.series.length > 1, labels: legend_labels(block)},
        tooltip: {callbacks: {title: () => "", label: tooltip_label}},
      },
    });
    config.plugins = [mark_plugin, error_plugin];
    return config;
  }

  function numbers_of(block) {
    if (block.kind === "bars")
      return [["", ...block.series.map(({name}) => name)],
              () => block.labels.map((label, i) => [label, ...block.series.map(({values}) => values[i])])];
    return [["", block.x.title, block.y.title], () => block.series.flatMap(({name, points}) =>
        points.map(({x, y, label}) => [label || name, x, y]))];
  }

  function chart_block(block, panel) {
    const canvas = el("canvas", {role: "img", "aria-label": plain(block.says)});
    const [columns, rows] = numbers_of(block);
    const config = block.kind === "bars" ? bars_config : points_config;
    panel.shown(() => {
      const chart = new Chart(canvas, shared(config(block), block));
      themed.push(() => {
        const fresh = shared(config(block), block);
        chart.data = fresh.data;
        chart.options = fresh.options;
        chart.update();
      });
    });
    return el("figure", {class: "chart"}, block.title ? el("h3", {}, block.title) : null,
              block.says ? el("figcaption", {class: "says"}, words(block.says)) : null,
              el("div", {class: "canvas"}, canvas), table("The numbers of this chart", columns, rows, true));
  }

  Chart.defaults.font.family = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";
  kinds.chart = chart_block;
  kinds.bars = chart_block;
})();
