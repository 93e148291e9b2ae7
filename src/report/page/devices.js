// ---- Devices over time --------------------------------------------------------------------------

const kTrack = {height: 20, gap: 4, name: 130};

// A row for each device and each link; a rectangle for each job, from its start to its end.
function deviceTracks(devices) {
  const jobs = sum(devices.tracks.map(track => track[2].length));
  const hues = new Map();
  return picture("devices", `${plural(jobs, "job")} on ${plural(devices.tracks.length, "device and link")}`,
    (svg, width) => {
      const row = kTrack.height + kTrack.gap;
      const height = kMargin.top + devices.tracks.length * row + kMargin.bottom;
      sized(svg, width, height);
      const x = scale(0, devices.seconds, kTrack.name, width - kMargin.right, false);
      const y = Object.assign(() => 0, {ticks: []});
      axes(svg, width, height, x, y, ["time", ""], [seconds, count]);
      return devices.tracks.flatMap(([name, isLink, spans], i) => {
        const top = kMargin.top + i * row;
        const label = shape("text", {x: kTrack.name - 6, y: top + 14, "text-anchor": "end", "aria-hidden": "true"},
                            shortened(name, 20));
        const names = shape("g", {class: "axes"});
        names.append(label);
        svg.append(names);
        return spans.map(([job, begin, end]) => {
          if (!hues.has(job)) hues.set(job, hueOf(hues.size));
          const mark = shape("rect", {class: "mark buffer", x: x(begin), y: top,
                                      width: Math.max(0.5, x(end) - x(begin)),
                                      height: isLink ? kTrack.height / 2 : kTrack.height});
          mark.style.setProperty("--hue", hues.get(job));
          svg.append(mark);
          return {shape: mark, text: `${name}: ${job} from ${seconds(begin)} to ${seconds(end)}`};
        });
      });
    });
}

function jobTable(devices) {
  const jobs = devices.tracks.flatMap(([name, , spans]) => spans.map(span => [name, ...span]));
  return fold("The jobs as a table", table("Jobs of devices and links", [
    {title: "device or link", text: row => row[0]},
    {title: "job", text: row => row[1]},
    {title: "from", text: row => seconds(row[2]), value: row => row[2]},
    {title: "to", text: row => seconds(row[3]), value: row => row[3]},
  ], jobs));
}

function devicesPart() {
  const devices = report.devices;
  if (!devices) return;
  const left = [];
  if (devices.left_out_tracks > 0) left.push(plural(devices.left_out_tracks, "device and link"));
  if (devices.left_out_spans > 0) left.push(plural(devices.left_out_spans, "short job"));
  const notes = left.length > 0 ? [element("p", {class: "note"}, `${left.join(" and ")} left out.`)] : [];
  const who = report.placement ? `The devices of ${devices.system} run the kernels that the plan gives them`
    : `Each device of ${devices.system} runs the model`;
  section("devices", "Devices over time", `${who}; by price it takes ` +
          `${seconds(devices.seconds)}. Full rows are what devices compute, half rows the messages on links. ` +
          "Nothing was run.", deviceTracks(devices), ...notes, jobTable(devices));
}

// Tables of memory and links, and of the change if a kernel moved.
function placementPart() {
  if (!report.placement) return;
  section("placement", "Why kernels are where they are", "Memory of devices, bytes on links, and the longest " +
          "kernels with their price and the change of the step on each device.",
          element("pre", {tabindex: 0}, report.placement));
}
