// Copyright 2026 ur_energy_model maintainers
// SPDX-License-Identifier: Apache-2.0

// Numbers: decoding, ticks, formats. No DOM here.

const HOLE = 65535;

function decodeArray(entry, pool) {
  const [low, high, index] = entry;
  const text = atob(pool[index]);
  const out = new Float64Array(text.length / 2);
  const step = (high - low) / (HOLE - 1);
  for (let i = 0; i < out.length; i++) {
    const code = text.charCodeAt(2 * i) + 256 * text.charCodeAt(2 * i + 1);
    out[i] = code === HOLE ? NaN : low + code * step;
  }
  return out;
}

// Round tick values within a range: about the given number, at least three.
function ticks(low, high, count) {
  for (let more = count; more < count + 6; more++) {
    const found = ticksAbout(low, high, more);
    if (found.length > 2) return found;
  }
  return ticksAbout(low, high, count);
}

function ticksAbout(low, high, count) {
  const raw = (high - low) / Math.max(1, count);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(k * step);
  return out;
}

const DAY = 86400000;
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// Days since 1970 at which days, weeks, months or years begin.
function dayTicks(low, high, count) {
  const span = high - low, out = [];
  const days = [1, 2, 7, 14].find((step) => span / step <= count);
  if (days) {
    for (let day = Math.ceil(low); day <= high; day++) if ((day + 3) % days === 0) out.push(day); // Mondays
    return out;
  }
  const months = [1, 2, 3, 6, 12].find((step) => span / (30.4 * step) <= count) || 12 * Math.ceil(span / (365 * count));
  const start = new Date(low * DAY);
  for (let month = 12 * start.getUTCFullYear(); ; month += months) {
    const day = Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY;
    if (day > high) return out;
    if (day >= low) out.push(day);
  }
}

function dayText(day) {
  const date = new Date(Math.round(day) * DAY), month = MONTHS[date.getUTCMonth()];
  if (date.getUTCDate() !== 1) return `${date.getUTCDate()} ${month}`;
  return `1 ${month} ${date.getUTCFullYear()}`;
}

function logTicks(low, high) {
  const out = [];
  const first = Math.ceil(low - 1e-9), last = Math.floor(high + 1e-9);
  const stride = Math.max(1, Math.ceil((last - first) / 6));
  for (let k = first; k <= last; k += stride) out.push(k);
  return out;
}

function powerOfTen(exponent) {
  return "10" + [...String(exponent)].map((c) => (c === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[c])).join("");
}

function digitsOf(list) {
  if (list.length < 2) return 2;
  return Math.min(6, Math.max(0, -Math.floor(Math.log10(Math.abs(list[1] - list[0])) + 1e-9)));
}

function fixed(value, digits) {
  return (Math.abs(value) < 0.5 * 10 ** -digits ? 0 : value).toFixed(digits).replace("-", "\u2212");
}

function short(value) {
  if (value === null || !Number.isFinite(value)) return "\u2013";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) {
    return value.toExponential(2).replace("-", "\u2212").replace("e+", "e");
  }
  const digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 1 ? 2 : 4;
  return fixed(value, digits);
}

// A value with its interval, rounded to two significant digits of the interval.
function withReach(value, reach) {
  if (!(reach > 0)) return short(value);
  const digits = 1 - Math.floor(Math.log10(reach));
  if (digits > 5) return `${value.toExponential(2)} \u00b1 ${reach.toExponential(0)}`.replaceAll("-", "\u2212");
  return `${fixed(value, Math.max(0, digits))} \u00b1 ${fixed(reach, Math.max(0, digits))}`;
}

// Index of the first element not smaller than x in an ascending array.
function lowerBound(array, x) {
  let low = 0, high = array.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (array[middle] < x) low = middle + 1; else high = middle;
  }
  return low;
}

function nearestValue(line, x) {
  let i = lowerBound(line.x, x);
  if (i > 0 && (i === line.x.length || x - line.x[i - 1] < line.x[i] - x)) i -= 1;
  return line.base ? line.y[i] - line.base[i] : line.y[i];
}

function extent(arrays) {
  let low = Infinity, high = -Infinity;
  for (const array of arrays) {
    for (const value of array) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}
