// ---- Numbers as people read them ----------------------------------------------------------------

// Three digits: "12.3", "1230", "0.0123".
function digits(value) {
  if (value === 0) return "0";
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toPrecision(3).replace(/e.*/, "");
}

// 12.3 µs. `units` go up in steps of `base` from the one that 1 is in.
function withUnit(value, units, base, first) {
  if (!isFinite(value)) return "unknown";
  let at = first;
  while (Math.abs(value) >= base * 0.9995 && at + 1 < units.length) (value /= base), at++;
  while (value !== 0 && Math.abs(value) < 0.9995 && at > 0) (value *= base), at--;
  return digits(value) + (units[at] ? "\u00a0" + units[at] : "");
}

const seconds = value => withUnit(value, ["ns", "µs", "ms", "s"], 1000, 3);
const count = value => withUnit(value, ["", "k", "M", "G", "T", "P"], 1000, 0);
const bytes = value => withUnit(value, ["B", "KiB", "MiB", "GiB", "TiB"], 1024, 0);
const percent = part => digits(100 * part) + "\u00a0%";
const times = ratio => ratio.toFixed(ratio < 10 ? 2 : 1) + "\u00a0×";
const plural = (number, word) =>
  `${number.toLocaleString("en")} ${number === 1 ? word : word + "s"}`;

// "1.30 × (1.25 to 1.36)".
function ratioText(ratio, interval) {
  if (!interval) return times(ratio);
  return `${times(ratio)} (${interval[0].toFixed(2)} to ${interval[1].toFixed(2)})`;
}

// "1.00 G" as "1 G", for axes.
const brief = text => text.replace(/\.(\d*?)0+(?!\d)/, ".$1").replace(/\.(?!\d)/, "");

// Of arrays of any length.
const sum = numbers => numbers.reduce((all, one) => all + one, 0);
const largest = numbers => numbers.reduce((most, one) => Math.max(most, one), -Infinity);
const smallest = numbers => numbers.reduce((least, one) => Math.min(least, one), Infinity);

// At most so many characters; what is cut is in the middle.
function shortened(text, most) {
  if (text.length <= most) return text;
  const front = Math.floor((most - 1) / 3);
  return text.slice(0, front) + "…" + text.slice(text.length - (most - 1 - front));
}
