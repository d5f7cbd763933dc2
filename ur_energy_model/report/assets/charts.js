// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// Drawing: each kind of chart as SVG with a given width.

const SVG = "http://www.w3.org/2000/svg";

function svg(name, attributes, parent) {
  const element = document.createElementNS(SVG, name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(element);
  return element;
}

function html(name, className, text, parent) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function write(parent, x, y, text, attributes = {}) {
  svg("text", { x, y, ...attributes }, parent).textContent = text;
}

function colourClass(line) {
  if (line.role === "measured" || line.role === "aside") return "c-data";
  if (line.role === "truth" || line.role === "second") return "c-ink";
  return line.joint === null || line.joint === undefined ? "c-arm" : `c${line.joint % 8}`;
}

// The visible part of a curve, decimated to the extremes of each pixel column.
function curvePath(line, px, py, low, high, columns) {
  const { x, y } = line;
  const first = Math.max(0, lowerBound(x, low) - 1);
  const last = Math.min(x.length, lowerBound(x, high) + 1);
  const parts = [];
  let pen = "M";
  const put = (i) => {
    if (Number.isNaN(y[i])) { pen = "M"; return; }
    parts.push(pen, px(x[i]).toFixed(1), " ", py(y[i]).toFixed(1));
    pen = "L";
  };
  if (last - first < 3 * columns) {
    for (let i = first; i < last; i++) put(i);
    return parts.join("");
  }
  const width = (last - first) / columns;
  for (let c = 0; c < columns; c++) {
    const start = first + Math.floor(c * width), stop = first + Math.floor((c + 1) * width);
    let least = start, most = start, hole = -1;
    for (let i = start; i < stop; i++) {
      if (Number.isNaN(y[i])) { hole = i; continue; }
      if (!(y[i] >= y[least])) least = i;
      if (!(y[i] <= y[most])) most = i;
    }
    for (const i of [...new Set([start, least, most, hole, stop - 1])].sort((a, b) => a - b)) {
      if (i >= 0) put(i);
    }
  }
  return parts.join("");
}

// Area between two curves, interrupted by holes.
function areaPath(line, upperAt, lowerAt, px, py, low, high) {
  const first = Math.max(0, lowerBound(line.x, low) - 1);
  const last = Math.min(line.x.length, lowerBound(line.x, high) + 1);
  const stride = Math.max(1, Math.floor((last - first) / 2400));
  const out = [];
  let upper = [], lower = [];
  const close = () => {
    if (upper.length > 1) out.push(`M${upper.join("L")}L${lower.reverse().join("L")}Z`);
    upper = []; lower = [];
  };
  for (let i = first; i < last; i += stride) {
    if (Number.isNaN(line.y[i])) { close(); continue; }
    const x = px(line.x[i]).toFixed(1);
    upper.push(`${x} ${py(upperAt(i)).toFixed(1)}`);
    lower.push(`${x} ${py(lowerAt(i)).toFixed(1)}`);
  }
  close();
  return out.join("");
}

// Clouds of at most this many points are drawn as marks.
const FEW = 3;

function dotsPath(line, px, py) {
  const parts = [];
  for (let i = 0; i < line.x.length; i++) {
    if (!Number.isNaN(line.y[i])) parts.push(`M${px(line.x[i]).toFixed(1)} ${py(line.y[i]).toFixed(1)}h0`);
  }
  return parts.join("");
}

function visibleRange(lines, low, high, logY, fromZero) {
  let bottom = fromZero || lines.some((line) => line.base) ? 0 : Infinity, top = -Infinity;
  for (const line of lines) {
    const first = line.points ? 0 : Math.max(0, lowerBound(line.x, low) - 1);
    const last = line.points ? line.x.length : Math.min(line.x.length, lowerBound(line.x, high) + 1);
    for (let i = first; i < last; i++) {
      const value = line.y[i];
      if (value < bottom && (!logY || value > 0)) bottom = value;
      if (value > top) top = value;
    }
  }
  if (!(bottom <= top)) return [0, 1];
  if (logY) {
    const margin = 0.04 * (Math.log10(top) - Math.log10(bottom) || 1);
    return [Math.log10(bottom) - margin, Math.log10(top) + margin];
  }
  const span = top - bottom || Math.abs(top) || 1;
  return [bottom - 0.06 * span, top + 0.06 * span];
}

// One pair of axes. Returns scales and position of the plot, for interaction.
function drawPanel(parent, chart, panel, lines, width, range, beside) {
  const wide = width > 520;
  const height = Math.round(chart.equal ? width * 0.85 : wide ? Math.min(270, width * 0.36) : 165);
  const left = 46, right = width - 8, top = 8, bottom = height - 30;
  let [x0, x1] = range;
  let [y0, y1] = visibleRange(chart.common_y ? beside : lines, x0, x1, chart.log_y, chart.from_zero);
  if (chart.equal) {
    [y0, y1] = extent(lines.map((line) => line.y));
    const scale = 1.1 * Math.max((x1 - x0) / (right - left), (y1 - y0) / (bottom - top), 1e-9);
    const cx = (x0 + x1) / 2, cy = (y0 + y1) / 2;
    [x0, x1] = [cx - scale * (right - left) / 2, cx + scale * (right - left) / 2];
    [y0, y1] = [cy - scale * (bottom - top) / 2, cy + scale * (bottom - top) / 2];
  }
  const px = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (right - left);
  const linear = (y) => bottom - ((y - y0) / (y1 - y0 || 1)) * (bottom - top);
  const py = chart.log_y ? (y) => linear(Math.log10(Math.max(y, 1e-300))) : linear;
  const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" }, parent);
  const yTicks = chart.log_y ? logTicks(y0, y1) : ticks(y0, y1, 4);
  const room = Math.max(2, Math.min(8, width / 80));
  const xTicks = chart.dates ? dayTicks(x0, x1, room) : ticks(x0, x1, room);
  for (const y of yTicks) {
    svg("line", { class: y === 0 && !chart.log_y ? "zero" : "grid", x1: left, x2: right, y1: linear(y), y2: linear(y) }, root);
    const text = chart.log_y ? powerOfTen(y) : fixed(y, digitsOf(yTicks));
    write(root, left - 6, linear(y) + 4, text, { "text-anchor": "end" });
  }
  for (const x of xTicks) {
    svg("line", { class: "grid", x1: px(x), x2: px(x), y1: top, y2: bottom }, root);
    write(root, px(x), bottom + 14, chart.dates ? dayText(x) : fixed(x, digitsOf(xTicks)), { "text-anchor": "middle" });
  }
  write(root, right, height - 3, chart.x_label, { "text-anchor": "end" });
  const clip = `clip${(drawPanel.count = (drawPanel.count || 0) + 1)}`;
  svg("rect", { x: left, y: top - 2, width: right - left, height: bottom - top + 4 },
    svg("clipPath", { id: clip }, root));
  const marks = svg("g", { "clip-path": `url(#${clip})` }, root);
  for (const line of lines) {
    const colour = colourClass(line);
    if (line.points) {
      const size = line.x.length <= FEW ? "few" : "";
      svg("path", { class: `dots ${line.role} ${size} ${colour}`, d: dotsPath(line, px, py) }, marks);
    } else if (chart.equal) {
      let d = "", pen = "M";
      for (let i = 0; i < line.x.length; i++) {
        d += `${pen}${px(line.x[i]).toFixed(1)} ${py(line.y[i]).toFixed(1)}`;
        pen = "L";
      }
      svg("path", { class: `curve ${line.role} ${colour}`, d }, marks);
    } else {
      if (line.base) {
        const d = areaPath(line, (i) => line.y[i], (i) => line.base[i], px, py, x0, x1);
        svg("path", { class: `area ${line.role} ${colour}`, d }, marks);
        continue;
      }
      if (line.band) {
        const d = areaPath(line, (i) => line.y[i] + line.band[i], (i) => line.y[i] - line.band[i], px, py, x0, x1);
        svg("path", { class: `band ${colour}`, d }, marks);
      }
      const d = curvePath(line, px, py, x0, x1, Math.ceil(right - left));
      svg("path", { class: `curve ${line.role} ${colour}`, d }, marks);
    }
  }
  return { root, left, right, top, bottom, x0, x1, width };
}

function legend(parent, entries) {
  for (const { label, role, joint, points, x, bar, base, mixed } of entries) {
    const item = html("span", "", "", parent);
    const mark = svg("svg", { viewBox: "0 0 24 12", "aria-hidden": "true" }, item);
    const colour = mixed && role === "model" ? "c-ink" : colourClass({ role, joint });
    if (bar || base) svg("rect", { class: `${base ? "area" : "bar"} ${role} ${colour}`, x: 4, y: 1, width: 16, height: 10 }, mark);
    else if (points && x && x.length <= FEW) svg("path", { class: `dots ${role} few ${colour}`, d: "M12 6h0" }, mark);
    else if (points) svg("path", { class: `dots ${role} ${colour}`, d: "M6 6h0M12 6h0M18 6h0" }, mark);
    else svg("path", { class: `curve ${role} ${colour}`, d: "M2 6H22" }, mark);
    html("span", "", label, item);
  }
}

// Charts with one row per category: boxes, bars and intervals, readable at any width.
function rowFrame(parent, width, rows, rowHeight, low, high, label) {
  const left = 128, right = width - 14, top = 6;
  const bottom = top + rows.length * rowHeight;
  const root = svg("svg", { viewBox: `0 0 ${width} ${bottom + 32}`, role: "img" }, parent);
  const px = (value) => left + ((value - low) / (high - low || 1)) * (right - left);
  const marks = ticks(low, high, Math.max(2, Math.min(8, (right - left) / 80)));
  for (const value of marks) {
    svg("line", { class: value === 0 ? "zero" : "grid", x1: px(value), x2: px(value), y1: top, y2: bottom }, root);
    write(root, px(value), bottom + 14, fixed(value, digitsOf(marks)), { "text-anchor": "middle" });
  }
  write(root, right, bottom + 29, label, { "text-anchor": "end" });
  rows.forEach((name, i) => {
    write(root, left - 8, top + (i + 0.5) * rowHeight + 4, name, { class: "label", "text-anchor": "end" });
  });
  return { root, px, y: (row) => top + (row + 0.5) * rowHeight };
}

function title(element, text) {
  svg("title", {}, element).textContent = text;
}

function drawBoxes(parent, chart, width, shown) {
  const rows = chart.categories.map((_, i) => i).filter((i) => shown(i));
  const all = chart.boxes.flatMap((boxes) => rows.map((i) => boxes[i])).filter((box) => box[0] !== null);
  if (!all.length) return;
  const [low, high] = extent([all.map((box) => box[0]), all.map((box) => box[box.length - 1]), [0]]);
  const margin = 0.03 * (high - low || 1);
  const count = chart.boxes.length;
  const size = 14 * count + 16;
  const frame = rowFrame(parent, width, rows.map((i) => chart.categories[i]), size, low - margin, high + margin, chart.y_label);
  chart.boxes.forEach((boxes, s) => rows.forEach((i, row) => {
    const [minimum, low, first, median, third, high, maximum] = boxes[i];
    if (median === null) return;
    const y = frame.y(row) + (s - (count - 1) / 2) * 14;
    const group = svg("g", { class: `c${i % 8}` }, frame.root);
    svg("line", { class: "whisker", x1: frame.px(low), x2: frame.px(high), y1: y, y2: y }, group);
    svg("rect", { class: s ? "box second" : "box", x: frame.px(first), y: y - 5,
      width: Math.max(1, frame.px(third) - frame.px(first)), height: 10 }, group);
    svg("line", { class: "median", x1: frame.px(median), x2: frame.px(median), y1: y - 5, y2: y + 5 }, group);
    for (const value of [minimum, maximum]) {
      svg("path", { class: "dots", d: `M${frame.px(value).toFixed(1)} ${y}h0` }, group);
    }
    title(group, `${chart.categories[i]}, ${chart.series[s]}: median ${short(median)}, ` +
      `quartiles ${short(first)} to ${short(third)}, extremes ${short(minimum)} and ${short(maximum)}`);
  }));
}

function drawBars(parent, chart, width, shown) {
  const rows = chart.categories.map((_, i) => i)
    .filter((i) => chart.joints[i] === null || chart.joints[i] === undefined || shown(chart.joints[i]));
  const each = chart.stacked ? 1 : chart.bars.length;
  let low = 0, high = 0;
  for (const i of rows) {
    let sum = 0;
    for (const bars of chart.bars) {
      const reach = bars.half_width ? bars.half_width[i] || 0 : 0;
      sum = chart.stacked ? sum + Math.max(0, bars.values[i]) : bars.values[i];
      low = Math.min(low, sum - reach); high = Math.max(high, sum + reach);
    }
  }
  const room = (high - low || 1) * Math.min(0.35, 70 / width);
  const frame = rowFrame(parent, width, rows.map((i) => chart.categories[i]), 13 * each + 12, low, high + room, chart.y_label);
  rows.forEach((i, row) => {
    let base = 0;
    chart.bars.forEach((bars, s) => {
      const value = bars.values[i];
      if (value === null) return;
      const y = frame.y(row) + (chart.stacked ? 0 : (s - (each - 1) / 2) * 13);
      const from = chart.stacked ? base : 0;
      const colour = colourClass({ role: bars.role === "aside" ? "model" : bars.role, joint: bars.joint ?? chart.joints[i] });
      const a = frame.px(Math.min(from, from + value)), b = frame.px(Math.max(from, from + value));
      const bar = svg("rect", { class: `bar ${bars.role} ${colour}`, x: a, y: y - 5, width: Math.max(0.5, b - a), height: 10 }, frame.root);
      title(bar, `${chart.categories[i]}, ${bars.label}: ${short(value)}`);
      const reach = bars.half_width ? bars.half_width[i] : null;
      if (reach) svg("line", { class: "error", x1: frame.px(value - reach), x2: frame.px(value + reach), y1: y, y2: y }, frame.root);
      const end = frame.px(Math.max(from, from + value) + (reach || 0));
      if (!chart.stacked) write(frame.root, end + 5, y + 4, reach ? withReach(value, reach) : short(value));
      base += value;
    });
  });
}

// Grids of cells; the stronger the colour, the larger the value.
function drawHeat(parent, chart, width) {
  const top = chart.largest || 1;
  const key = html("p", "heat-key", "", parent);
  html("span", "", `0`, key);
  const ramp = svg("svg", { viewBox: "0 0 100 10", "aria-hidden": "true" }, key);
  for (let i = 0; i < 10; i++) svg("rect", { class: "cell c-arm", x: 10 * i, y: 0, width: 10, height: 10, "fill-opacity": heat(i / 9) }, ramp);
  html("span", "", `${short(chart.largest)} ${chart.value_label}`, key);
  const note = html("span", "note", "", key);
  for (const panel of chart.panels) {
    const cell = html("div", "panel", "", parent);
    if (panel.title) caption(cell, panel.title, "");
    const columns = panel.values.length ? panel.values[0].length : 0;
    const left = Math.min(110, 14 + 6.6 * Math.max(...panel.rows.map((name) => name.length)));
    const size = Math.min(26, (width - left) / Math.max(1, columns)), tall = Math.max(10, Math.min(18, size));
    const bottom = panel.rows.length * tall;
    const root = svg("svg", { viewBox: `0 0 ${width} ${bottom + 18}`, role: "img" }, cell);
    panel.rows.forEach((name, i) => write(root, left - 7, (i + 0.5) * tall + 4, name, { "text-anchor": "end" }));
    let free = -Infinity;
    for (const [column, text] of panel.ticks) {
      const x = left + column * size;
      if (x < free || x + 6.2 * text.length > width) continue;
      write(root, x, bottom + 14, text);
      free = x + 6.2 * text.length + 8;
    }
    panel.values.forEach((row, i) => row.forEach((value, j) => {
      if (value === null) return;
      const text = `${panel.cells[i][j]}: ${short(value)} ${chart.value_label}`;
      const box = svg("rect", { class: "cell c-arm", x: (left + j * size).toFixed(2), y: i * tall,
        width: Math.max(0.5, size - (size > 6 ? 1 : 0)).toFixed(2), height: tall - 1, "fill-opacity": heat(value / top) }, root);
      title(box, text);
      box.addEventListener("pointerenter", () => { note.textContent = text; });
    }));
  }
}

function heat(share) {
  return (0.06 + 0.94 * Math.min(1, Math.max(0, share))).toFixed(3);
}

function drawIntervals(parent, chart, panel, width, shown) {
  const [, unit, rows] = panel;
  const intervals = rows.map(([joint, value, half_width, prior]) => ({ joint, value, half_width, prior }))
    .filter((item) => shown(item.joint) && item.value !== null);
  if (!intervals.length) return;
  const [low, high] = extent([
    intervals.map((item) => item.value - (item.half_width || 0)),
    intervals.map((item) => item.value + (item.half_width || 0)),
    intervals.filter((item) => item.prior !== null).map((item) => item.prior),
  ]);
  const margin = 0.06 * (high - low || Math.abs(high) || 1);
  const frame = rowFrame(parent, width, intervals.map((item) => chart.categories[item.joint]), 26, low - margin, high + margin, `[${unit}]`);
  intervals.forEach((item, row) => {
    const y = frame.y(row);
    const group = svg("g", { class: `c${item.joint % 8}` }, frame.root);
    if (item.prior !== null) svg("line", { class: "prior", x1: frame.px(item.prior), x2: frame.px(item.prior), y1: y - 8, y2: y + 8 }, group);
    const reach = item.half_width || 0;
    svg("line", { class: "whisker", x1: frame.px(item.value - reach), x2: frame.px(item.value + reach), y1: y, y2: y }, group);
    svg("circle", { class: "box", cx: frame.px(item.value), cy: y, r: 3.5 }, group);
    title(group, `${chart.categories[item.joint]}: ${withReach(item.value, item.half_width)} ${unit}` +
      (item.prior === null ? "" : `, before: ${short(item.prior)}`));
  });
}
