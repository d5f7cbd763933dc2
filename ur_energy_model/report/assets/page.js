// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// The page: joint and recording selection, zoom, hover, light and dark.

const source = JSON.parse(document.getElementById("report-data").textContent);
const state = { joints: new Set(), recording: source.recordings.length > 1 ? 0 : null, zoom: {}, printing: false };
const PRINT_WIDTH = 690;

const whole = document.getElementById("whole");

const jointShown = (joint) => state.printing || state.joints.size === 0
  || joint === null || joint === undefined || state.joints.has(joint);

for (const chart of source.charts) {
  for (const panel of chart.panels || []) {
    for (const line of panel.lines || []) {
      line.x = decodeArray(line.x, source.pool);
      line.y = decodeArray(line.y, source.pool);
      line.band = line.band && decodeArray(line.band, source.pool);
      line.base = line.base && decodeArray(line.base, source.pool);
    }
  }
  if (chart.focus) state.zoom[groupKey(chart)] = chart.focus;
}
delete source.pool;

const charts = source.charts.map((chart) => ({ chart, figure: document.getElementById(chart.id) }));

function groupKey(chart) {
  return chart.group || chart.id;
}

function fullRange(chart, lines) {
  if (chart.full === undefined || chart.equal) chart.full = extent(lines.map((line) => line.x));
  return chart.full;
}

function draw(entry) {
  const { chart, figure } = entry;
  figure.hidden = !state.printing && state.recording !== null
    && chart.recording !== null && chart.recording !== state.recording;
  if (figure.hidden) return;
  const plot = figure.querySelector(".plot");
  const width = state.printing ? PRINT_WIDTH : plot.clientWidth || PRINT_WIDTH;
  entry.drawnWidth = width;
  plot.replaceChildren();
  if (chart.kind === "lines") drawLines(entry, plot, width);
  else if (chart.kind === "intervals") drawGrid(plot, chart.panels, 3, width, (panel, cell, size) => {
    caption(cell, panel[0], "");
    drawIntervals(cell, chart, panel, size, jointShown);
  });
  else if (chart.kind === "heat") drawHeat(plot, chart, width);
  else {
    const box = html("div", "rows", "", plot);
    (chart.kind === "boxes" ? drawBoxes : drawBars)(box, chart, width, jointShown);
  }
  const key = figure.querySelector(".legend");
  key.replaceChildren();
  legend(key, legendEntries(chart));
  describe(figure);
}

function describe(figure) {
  const name = figure.querySelector("h3").textContent;
  for (const root of figure.querySelectorAll(".plot > * svg")) root.setAttribute("aria-label", name);
}

function caption(cell, text, note) {
  const line = html("p", "", "", cell);
  html("b", "", text, line);
  return html("span", "", note, line);
}

function drawGrid(plot, panels, columns, width, paint) {
  const fit = Math.max(1, Math.min(columns, panels.length, Math.floor(width / (state.printing ? 210 : 290))));
  const grid = html("div", "panels", "", plot);
  grid.style.gridTemplateColumns = `repeat(${fit}, minmax(0, 1fr))`;
  const size = Math.floor((width - 22.4 * (fit - 1)) / fit);
  panels.forEach((panel) => paint(panel, html("div", "panel", "", grid), size));
}

function drawLines(entry, plot, width) {
  const { chart } = entry;
  const panels = chart.panels
    .filter((panel) => jointShown(panel.joint))
    .map((panel) => ({ panel, lines: panel.lines.filter((line) => jointShown(line.joint)) }))
    .filter(({ lines }) => lines.length);
  entry.cells = [];
  drawGrid(plot, panels, chart.columns, width, ({ panel, lines }, cell, size) => {
    const label = panel.y_label || chart.y_label;
    const note = caption(cell, panel.y_label || !panel.title ? label : `${panel.title} ${unitOf(label)}`, panel.note);
    const full = fullRange(chart, chart.equal || !chart.group ? lines : chart.panels.flatMap((p) => p.lines));
    const range = chart.equal ? full : state.zoom[groupKey(chart)] || (chart.group ? full : extent(lines.map((line) => line.x)));
    const axes = drawPanel(cell, chart, panel, lines, size, range, panels.flatMap((other) => other.lines));
    const item = { chart, panel, lines, note, axes, full };
    entry.cells.push(item);
    if (chart.group) interact(item);
  });
}

function unitOf(label) {
  return (label.match(/\[.*\]/) || [""])[0];
}

function legendEntries(chart) {
  if (chart.kind === "bars") return chart.bars.length > 1 ? chart.bars.map((b) => ({ ...b, bar: true })) : [];
  if (chart.kind === "boxes") {
    return chart.series.length > 1 ? chart.series.map((label, i) => ({ label, role: i ? "aside" : "model", bar: true, joint: null })) : [];
  }
  if (chart.kind !== "lines") return [];
  const seen = new Map();
  for (const panel of chart.panels) {
    if (panel.lines.length < 2) continue;
    for (const line of panel.lines) {
      if (!jointShown(line.joint)) continue;
      const known = seen.get(line.label);
      if (!known) seen.set(line.label, { ...line });
      else if (known.joint !== line.joint) known.mixed = true;
    }
  }
  return [...seen.values()];
}

// Hover, drag to zoom, double click or Escape to see everything, arrow keys and + - on the keyboard.
function interact(item) {
  const { axes, chart } = item;
  const root = axes.root;
  root.classList.add("zooms");
  root.setAttribute("tabindex", "0");
  const value = (event) => {
    const box = root.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * axes.width;
    const inside = Math.min(Math.max(x, axes.left), axes.right);
    return axes.x0 + ((inside - axes.left) / (axes.right - axes.left)) * (axes.x1 - axes.x0);
  };
  let start = null;
  root.addEventListener("pointermove", (event) => {
    point(chart, value(event));
    if (start !== null && event.pointerType === "mouse") select(item, start, value(event));
  });
  root.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    start = value(event);
    root.setPointerCapture(event.pointerId);
  });
  root.addEventListener("pointercancel", () => { start = null; });
  root.addEventListener("pointerup", (event) => {
    if (start === null) return;
    const end = value(event);
    if (event.pointerType !== "mouse") { // a finger pushes the curves along
      const shift = start - end;
      start = null;
      if (Math.abs(shift) > 0.05 * (axes.x1 - axes.x0)) zoom(chart, [axes.x0 + shift, axes.x1 + shift], item.full);
      return;
    }
    const moved = Math.abs(end - start) > 0.01 * (axes.x1 - axes.x0);
    const range = [Math.min(start, end), Math.max(start, end)];
    start = null;
    if (moved) zoom(chart, range, item.full); else select(item, 0, 0);
  });
  root.addEventListener("pointerleave", () => unpoint(chart));
  root.addEventListener("dblclick", () => zoom(chart, null, item.full));
  root.addEventListener("keydown", (event) => {
    const span = axes.x1 - axes.x0, middle = (axes.x0 + axes.x1) / 2;
    const moves = {
      "+": [middle - span / 4, middle + span / 4],
      "-": [middle - span, middle + span],
      ArrowLeft: [axes.x0 - span / 4, axes.x1 - span / 4],
      ArrowRight: [axes.x0 + span / 4, axes.x1 + span / 4],
      Escape: null,
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    zoom(chart, moves[event.key], item.full);
    const entry = charts.find((other) => other.chart === chart);
    const again = entry.cells.find((other) => other.panel === item.panel);
    if (again) again.axes.root.focus();
  });
}

function select(item, from, to) {
  const { axes } = item;
  axes.root.querySelectorAll(".select").forEach((old) => old.remove());
  const px = (x) => axes.left + ((x - axes.x0) / (axes.x1 - axes.x0)) * (axes.right - axes.left);
  if (from === to) return;
  svg("rect", { class: "select", x: px(Math.min(from, to)), width: Math.abs(px(to) - px(from)), y: axes.top, height: axes.bottom - axes.top }, axes.root);
}

function point(chart, x) {
  for (const { chart: other, cells, figure } of charts) {
    if (groupKey(other) !== groupKey(chart) || figure.hidden || !cells) continue;
    for (const { axes, lines, note } of cells) {
      axes.root.querySelectorAll(".cross").forEach((old) => old.remove());
      const px = axes.left + ((x - axes.x0) / (axes.x1 - axes.x0)) * (axes.right - axes.left);
      svg("line", { class: "cross", x1: px, x2: px, y1: axes.top, y2: axes.bottom }, axes.root);
      note.textContent = `${chart.dates ? dayText(x) : short(x)}: ` + lines.map((line) => `${line.label} ${short(nearestValue(line, x))}`).join(" \u00b7 ");
    }
  }
}

function unpoint(chart) {
  for (const { chart: other, cells } of charts) {
    if (groupKey(other) !== groupKey(chart) || !cells) continue;
    for (const { axes, panel, note } of cells) {
      axes.root.querySelectorAll(".cross").forEach((old) => old.remove());
      note.textContent = panel.note;
    }
  }
}

function zoom(chart, range, full) {
  const key = groupKey(chart);
  if (range) {
    const span = Math.min(range[1] - range[0], full[1] - full[0]);
    const low = Math.min(Math.max(range[0], full[0]), full[1] - span);
    range = [low, low + span];
  }
  if (!range || range[1] - range[0] > 0.999 * (full[1] - full[0])) delete state.zoom[key];
  else if (range[1] - range[0] > 1e-4 * (full[1] - full[0])) state.zoom[key] = range;
  charts.filter((entry) => groupKey(entry.chart) === key).forEach(draw);
  offerWhole();
}

function drawAll() {
  charts.forEach(draw);
  offerWhole();
  for (const table of document.querySelectorAll(".table[data-recording]")) {
    table.hidden = state.recording !== null && Number(table.dataset.recording) !== state.recording;
  }
}

function press(buttons, isPressed) {
  buttons.forEach((button) => button.setAttribute("aria-pressed", String(isPressed(button))));
}

const jointButtons = [...document.querySelectorAll("button.joint")];
const everyJoint = document.getElementById("every-joint");
function selectJoints() {
  press(jointButtons, (button) => state.joints.has(Number(button.dataset.joint)));
  if (everyJoint) everyJoint.setAttribute("aria-pressed", String(state.joints.size === 0));
  drawAll();
}
jointButtons.forEach((button) => button.addEventListener("click", () => {
  const joint = Number(button.dataset.joint);
  if (!state.joints.delete(joint)) state.joints.add(joint);
  if (state.joints.size === jointButtons.length) state.joints.clear();
  selectJoints();
}));
if (everyJoint) everyJoint.addEventListener("click", () => { state.joints.clear(); selectJoints(); });

const recordingButtons = [...document.querySelectorAll("button.pick-recording")];
recordingButtons.forEach((button) => button.addEventListener("click", () => {
  state.recording = Number(button.dataset.recording);
  press(recordingButtons, (other) => other === button);
  drawAll();
}));

// The buttons act on all visible charts with a time axis.
function scaleTime(factor) {
  const seen = new Set();
  for (const { chart, figure, cells } of charts) {
    const key = groupKey(chart);
    if (figure.hidden || !chart.group || !cells || !cells.length || seen.has(key)) continue;
    seen.add(key);
    const { axes, full } = cells[0];
    const middle = (axes.x0 + axes.x1) / 2, half = (factor * (axes.x1 - axes.x0)) / 2;
    zoom(chart, [middle - half, middle + half], full);
  }
}
document.getElementById("closer").addEventListener("click", () => scaleTime(0.5));
document.getElementById("wider").addEventListener("click", () => scaleTime(2));

function offerWhole() {
  whole.hidden = !charts.some(({ chart, figure }) => !figure.hidden && groupKey(chart) in state.zoom);
}
whole.addEventListener("click", () => {
  state.zoom = {};
  drawAll();
});

const themeButton = document.getElementById("theme");
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : prefersDark.matches;
}
function nameTheme() {
  themeButton.textContent = isDark() ? "Light" : "Dark";
}
themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
prefersDark.addEventListener("change", nameTheme);
nameTheme();

const locks = [...document.querySelectorAll("input.lock")];
const command = document.getElementById("command");
const words = command && command.textContent;
function nameCommand() {
  const kept = locks.filter((lock) => lock.checked).map((lock) => lock.value).join(",");
  command.textContent = kept ? `${words} --keep ${kept}` : words;
}
for (const lock of locks) lock.addEventListener("change", nameCommand);
if (command) nameCommand();

let pending = 0;
new ResizeObserver(() => {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => {
    if (state.printing) return;
    for (const entry of charts) {
      const width = entry.figure.querySelector(".plot").clientWidth;
      if (width && width !== entry.drawnWidth) draw(entry);
    }
  });
}).observe(document.querySelector("main"));

window.addEventListener("beforeprint", () => { state.printing = true; drawAll(); });
window.addEventListener("afterprint", () => { state.printing = false; drawAll(); });

drawAll();
document.documentElement.dataset.ready = "true";
