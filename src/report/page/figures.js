// ---- Axes ---------------------------------------------------------------------------------------

const kMargin = {left: 64, right: 16, top: 16, bottom: 44};

// From values to pixels, and the other way round. On a logarithmic scale 0 lies at the low end.
function scale(low, high, from, to, logarithmic) {
  const at = logarithmic ? Math.log10 : value => value;
  const a = at(low), b = at(high) > at(low) ? at(high) : at(low) + 1;
  const map = value => from + (to - from) * (at(Math.max(value, low)) - a) / (b - a);
  map.ticks = logarithmic ? decades(a, b) : evenly(low, Math.max(high, low), Math.abs(to - from));
  return map;
}

function decades(a, b) {
  const step = Math.max(1, Math.ceil((b - a) / 8)), ticks = [];
  for (let power = Math.ceil(a - 1e-9); power <= b + 1e-9; power += step) ticks.push(10 ** power);
  return ticks;
}

function evenly(low, high, pixels) {
  const rough = (high - low) / Math.max(2, pixels / 90);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-9; tick += step)
    ticks.push(tick);
  return ticks;
}

function axes(svg, width, height, x, y, titles, texts) {
  const bottom = height - kMargin.bottom, right = width - kMargin.right;
  const lines = shape("g", {class: "axes", "aria-hidden": "true"});
  for (const tick of x.ticks)
    lines.append(shape("line", {x1: x(tick), x2: x(tick), y1: kMargin.top, y2: bottom}),
                 shape("text", {x: x(tick), y: bottom + 16, "text-anchor": "middle"},
                       brief(texts[0](tick))));
  for (const tick of y.ticks)
    lines.append(shape("line", {x1: kMargin.left, x2: right, y1: y(tick), y2: y(tick)}),
                 shape("text", {x: kMargin.left - 6, y: y(tick) + 4, "text-anchor": "end"},
                       brief(texts[1](tick))));
  lines.append(shape("text", {class: "title", x: right, y: height - 8, "text-anchor": "end"},
                     titles[0]),
               shape("text", {class: "title", x: 2, y: 10}, titles[1]));
  svg.append(lines);
}

function sized(svg, width, height) {
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("height", height);
}

const legend = () => element("ul", {class: "legend", "aria-label": "Colours"},
  [...colours].map(([name, colour]) =>
    element("li", {}, element("span", {class: `key ${colour}`, "aria-hidden": "true"}), name)));

// ---- Roofline -----------------------------------------------------------------------------------

// What the machine gives the model's threads.
function roofs() {
  const machine = report.machine, threads = report.threads;
  const memory = threads > 1 ? machine.memory_all_cores : machine.memory_one_core;
  const peak = (machine.peaks.f32 || 0) * threads;
  return {peak, memory, caches: machine.caches.map(cache => cache[2] * threads)};
}

// The least time that a step can take, by its operations and by memory.
function roofTime(step) {
  const {peak, memory} = roofs();
  const rate = step.peak || peak;
  return Math.max(rate > 0 ? step.operations / rate : 0, memory > 0 ? step.bytes / memory : 0);
}

function roofline(steps) {
  const {peak, memory, caches} = roofs();
  const points = steps.filter(step => step.kernel && step.seconds > 0 && step.bytes > 0)
    .map(step => ({step, intensity: step.operations / step.bytes,
                   rate: step.operations / step.seconds, flow: step.bytes / step.seconds}));
  const all = sum(steps.map(step => step.seconds));
  const some = points.filter(point => point.intensity > 0);
  const left = Math.min(0.05, smallest(some.map(point => point.intensity)) / 2);
  const right = Math.max(100, largest(some.map(point => point.intensity)) * 2);
  // What computes nothing stands at the left edge, as high as its bytes would lift it there.
  const heightOf = point => point.intensity > 0 ? point.rate : point.flow * left;
  const top = Math.max(peak, largest(points.map(heightOf))) * 2;
  const low = Math.min(top / 1e4, smallest(points.map(heightOf)) / 2);
  const text = point => `${point.step.label} (${point.step.step}, ${point.step.algorithm}): ` +
    `${seconds(point.step.seconds)}, ${percent(point.step.seconds / all)} of the time; ` +
    (point.intensity > 0 ? `${count(point.rate)} operations/s, ${digits(point.intensity)} per byte`
                         : `no operations, ${bytes(point.flow)}/s`) +
    `; ${times(point.step.seconds / Math.max(roofTime(point.step), 1e-15))} its roof`;
  return picture("roofline", `Roofline of ${plural(points.length, "kernel")}: operations per second ` +
                             "over operations per byte, below the roofs of the machine",
    (svg, width) => {
      const height = Math.min(480, Math.max(320, width * 0.5));
      sized(svg, width, height);
      const x = scale(left, right, kMargin.left, width - kMargin.right, true);
      const y = scale(low, top, height - kMargin.bottom, kMargin.top, true);
      axes(svg, width, height, x, y, ["operations per byte", "operations per second"],
           [digits, count]);
      let above = Infinity;  // the last name's height; one that is too close is left out
      const roof = (rate, name, kind) => {
        const bend = peak > 0 ? Math.min(right, peak / rate) : right;
        if (!(rate > 0) || bend <= left) return;
        const start = {x: x(left), y: y(left * rate)}, end = {x: x(bend), y: y(bend * rate)};
        svg.append(shape("path", {class: `roof ${kind}`, d: `M${start.x} ${start.y}L${end.x} ${end.y}`}));
        if (above - start.y < 13) return;
        above = start.y;
        const turn = Math.atan2(end.y - start.y, end.x - start.x) * 180 / Math.PI;
        svg.append(shape("text", {class: "roof-name", x: start.x + 10, y: start.y - 6,
                                  transform: `rotate(${turn} ${start.x} ${start.y})`}, name));
      };
      roof(memory, `memory ${bytes(memory)}/s`, "memory");
      [...caches.keys()].reverse().forEach(i =>
        roof(caches[i], `L${i + 1} ${bytes(caches[i])}/s`, "cache"));
      if (peak > 0)
        svg.append(shape("path", {class: "roof peak", d: `M${x(Math.max(left, peak /
                         Math.max(memory, ...caches, 1)))} ${y(peak)}H${x(right)}`}),
                   shape("text", {class: "roof-name", x: x(right) - 4, y: y(peak) - 6,
                                  "text-anchor": "end"}, `f32 peak ${count(peak)}/s`));
      const drawn = [...points].sort((a, b) => b.step.seconds - a.step.seconds);
      return drawn.map(point => {
        const circle = shape("circle", {
          class: `mark ${colourOf(point.step.algorithm)}`, cx: x(Math.max(point.intensity, left)),
          cy: y(heightOf(point)), r: 3 + 14 * Math.sqrt(point.step.seconds / all)});
        svg.append(circle);
        return {shape: circle, text: text(point)};
      });
    });
}

// ---- Bars of times ------------------------------------------------------------------------------

function sideBars(sides) {
  const most = largest(sides.map(side => side.p90));
  return picture("sides", "Median times of a run; the thin line goes from what 10 % to what 90 % of the " +
                          "runs take at most", (svg, width) => {
    const row = 44, height = sides.length * row + 4;
    sized(svg, width, height);
    const x = scale(0, most, 0, width - 110, false);
    return sides.map((side, i) => {
      const y = i * row;
      const bar = shape("rect", {class: `mark ${i === 0 ? "own" : "other"}`, x: 0, y: y + 18,
                                 width: Math.max(2, x(side.median)), height: 20, rx: 3});
      svg.append(shape("text", {x: 0, y: y + 13}, side.name), bar,
                 shape("path", {class: "whisker", d: `M${x(side.p10)} ${y + 28}H${x(side.p90)}`}),
                 shape("text", {x: Math.max(x(side.p90), x(side.median)) + 8, y: y + 33},
                       seconds(side.median)));
      return {shape: bar, text: `${side.name}: median ${seconds(side.median)}, 90 % take at most ` +
                                `${seconds(side.p90)}, of ${plural(side.runs, "run")}`};
    });
  });
}

// ---- Predicted against measured -----------------------------------------------------------------

// Points: {priced, measured, name, kind}.
function prediction(points) {
  const values = points.flatMap(point => [point.priced, point.measured]);
  const low = smallest(values) / 1.5, high = largest(values) * 1.5;
  return picture("prediction", `Predicted against measured times: ${plural(points.length, "point")}`,
                 (svg, width) => {
    const height = Math.min(420, Math.max(300, width * 0.5));
    sized(svg, width, height);
    const x = scale(low, high, kMargin.left, width - kMargin.right, true);
    const y = scale(low, high, height - kMargin.bottom, kMargin.top, true);
    axes(svg, width, height, x, y, ["predicted", "measured"], [seconds, seconds]);
    svg.append(shape("path", {class: "equal", d: `M${x(low)} ${y(low)}L${x(high)} ${y(high)}`}));
    return points.map(point => {
      const circle = shape("circle", {class: `mark ${point.kind}`, cx: x(point.priced),
                                      cy: y(point.measured), r: point.kind === "tried" ? 2.5 : 5});
      svg.append(circle);
      return {shape: circle, text: `${point.name}: predicted ${seconds(point.priced)}, measured ` +
              `${seconds(point.measured)}, ${times(point.measured / point.priced)}`};
    });
  });
}

// Steps: [measurements so far, seconds of all kernels by their best schedules].
function progress(steps) {
  const most = largest(steps.map(step => step[1])), least = smallest(steps.map(step => step[1]));
  return picture("progress", "Sum of the best times of the kernels after so many measurements",
    (svg, width) => {
      const height = 260;
      sized(svg, width, height);
      const x = scale(0, Math.max(1, steps[steps.length - 1][0]), kMargin.left,
                      width - kMargin.right, false);
      const y = scale(least * 0.95, most * 1.02, height - kMargin.bottom, kMargin.top, false);
      axes(svg, width, height, x, y, ["measurements", "all kernels"], [count, seconds]);
      const line = steps.map(([at, value], i) => i === 0 ? `M${x(at)} ${y(value)}`
                                                         : `H${x(at)}V${y(value)}`).join("");
      svg.append(shape("path", {class: "line", d: line}));
      return steps.map(([at, value]) => {
        const circle = shape("circle", {class: "mark own", cx: x(at), cy: y(value), r: 3});
        svg.append(circle);
        return {shape: circle, text: `After ${plural(at, "measurement")}: ${seconds(value)}`};
      });
    });
}
