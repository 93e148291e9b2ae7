// ---- Values that devices divide ------------------------------------------------------------------

function valueTable(sharding) {
  const most = Math.max(1, ...sharding.values.map(row => row[4]));
  return table("Who holds what", [
    {title: "value", text: row => row[0]},
    {title: "type", text: row => row[1]},
    {title: "divided", text: row => row[2]},
    {title: "all of it", text: row => bytes(row[3]), value: row => row[3]},
    {title: "a device", text: row => bytes(row[4]), value: row => row[4], bar: row => row[4] / most},
  ], sharding.values);
}

function exchangeTable(sharding) {
  const most = Math.max(1, ...sharding.exchanges.map(row => row[3]));
  return table("What devices exchange, and why", [
    {title: "exchange", text: row => row[0]},
    {title: "value", text: row => row[1]},
    {title: "needed by", text: row => row[2]},
    {title: "a device receives", text: row => bytes(row[3]), value: row => row[3], bar: row => row[3] / most},
  ], sharding.exchanges);
}

function shardingPart() {
  const sharding = report.sharding;
  if (!sharding) return;
  const parts = [valueTable(sharding)];
  if (sharding.exchanges.length > 0) parts.push(exchangeTable(sharding));
  if (sharding.whole.length > 0)
    parts.push(fold("What is computed whole", table("What is computed whole, and why", [
      {title: "computed whole", text: row => row[0]},
      {title: "because", text: row => row[1]},
    ], sharding.whole)));
  const left = [];
  if (sharding.left_out_values > 0) left.push(plural(sharding.left_out_values, "smaller value"));
  if (sharding.left_out_exchanges > 0) left.push(plural(sharding.left_out_exchanges, "smaller exchange"));
  if (sharding.left_out_whole > 0) left.push(`${plural(sharding.left_out_whole, "node")} computed whole`);
  if (left.length > 0) parts.push(element("p", {class: "note"}, `${left.join(" and ")} left out.`));
  section("sharding", "Values in parts", `The mesh ${sharding.mesh} has ${plural(sharding.devices, "device")}. ` +
          `A step takes ${seconds(sharding.seconds)} by price, and a device needs ${bytes(sharding.memory)}. ` +
          `Each device receives ${bytes(sharding.received)} in ${plural(sharding.exchanges.length + sharding.left_out_exchanges, "exchange")}.`,
          ...parts);
}
