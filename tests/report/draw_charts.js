// Draw the charts of a page under its content security policy, which forbids eval.
// Usage: `node --disallow-code-generation-from-strings draw_charts.js PAGE [plain]`. The script prints
// the length of the SVG of each chart. The document is a stub that accepts every call.
const fs = require("node:fs");
const vm = require("node:vm");
const page = fs.readFileSync(process.argv[2], "utf8");
const specs = JSON.parse(page.split('id="abstain-specs">')[1].split("</script>")[0]);
const library = page.split("<script>")[1].split("</script>")[0];
const defaultValue = (key) => ({ then: undefined, childNodes: [], children: [], nodeType: 1 })[key];
const stub = () => new Proxy(function swallow() {}, {
  get: (target, key) => {
    if (key === Symbol.toPrimitive) return () => "0";
    if (!(key in target)) target[key] = ["then", "childNodes", "children", "nodeType"].includes(key) ? defaultValue(key) : stub();
    return target[key];
  },
  set: (target, key, value) => { target[key] = value; return true; },
  apply: () => stub(),
  construct: () => stub(),
});
class Kind {}
Object.assign(globalThis, { window: globalThis, document: stub(), HTMLElement: Kind, ShadowRoot: Kind, Document: Kind, addEventListener: () => {} });
vm.runInThisContext(library);
const line = [0.1, 0.5, 1].map((x) => ({ score: "msr", coverage: x, confidence: x, risk: x / 5, value: x, accuracy: x, count: 9 }));
const reference = [{ x: 0, y: 0.2 }, { x: 1, y: 0.2 }];
const datasets = { curves: line, reliability: line, reference, bands: [], edges: [] };
const options = { mode: "vega-lite", renderer: "none", actions: false, ast: process.argv[3] !== "plain", logLevel: 0 };
(async () => {
  for (const [name, { spec }] of Object.entries(specs)) {
    const { view } = await globalThis.vegaEmbed(stub(), { ...spec, datasets }, options);
    console.log(name, (await view.toSVG()).length);
  }
})().catch((error) => { console.error(String(error)); process.exit(1); });
