// Checks pages that abstain wrote in Chromium:
//
//   npm install --no-save axe-core puppeteer-core
//   node tools/pages.mjs report/report.html [more.html ...] [--screenshots FOLDER] [--limits LIMITS]
//
// Each page is opened at 1280, 768 and 390 pixels, light and dark. It must write nothing to the console, request nothing,
// pass axe and not scroll sideways. The program prints height, DOM nodes, size without the chart library and renderer
// time of each page. LIMITS, such as height=3000,nodes=15000,seconds=1,kilobytes=400, are the largest permitted values at
// 1280 pixels. With --screenshots, each page is drawn at each width, dark and printed. CHROMIUM names the browser.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";

const require = createRequire(join(process.cwd(), "package.json"));
const puppeteer = require("puppeteer-core");
const { values: options, positionals: files } = parseArgs({
  allowPositionals: true,
  options: { screenshots: { type: "string" }, limits: { type: "string", default: "" } },
});
const limits = options.limits.split(",").filter(Boolean).map((limit) => limit.split("="));
const WIDTHS = [1280, 768, 390];
// Time for scripts that run after the page was loaded, in milliseconds.
const SETTLING_TIME = 1500;

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});

async function openPage(address, width, scheme) {
  const page = await browser.newPage();
  const problems = new Set();
  // The content security policy of a page would not permit the script of axe.
  await page.setBypassCSP(true);
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && problems.add(`console: ${message.text()}`));
  page.on("pageerror", (error) => problems.add(`error: ${error.message}`));
  page.on("request", (request) => /^(data:|blob:)/.test(request.url()) || request.url() === address || problems.add(`request: ${request.url()}`));
  await page.setViewport({ width, height: width < 500 ? 844 : 800 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(address, { waitUntil: "load" });
  await new Promise((resolved) => setTimeout(resolved, SETTLING_TIME));
  return { page, problems };
}

async function measurePage(page, file) {
  const [height, nodes] = await page.evaluate(() => [document.documentElement.scrollHeight, document.querySelectorAll("*").length]);
  const { TaskDuration: seconds } = await page.metrics();
  const text = readFileSync(file, "utf8");
  const scripts = [...text.matchAll(/<script>([\s\S]*?)<\/script>/g)].map(([, script]) => script.length);
  return { height, nodes, seconds, kilobytes: (Buffer.byteLength(text) - Math.max(0, ...scripts)) / 1000 };
}

async function checkPage(file, width, scheme) {
  const { page, problems } = await openPage(pathToFileURL(resolve(file)).href, width, scheme);
  const scrollWidth = await page.evaluate(() => document.documentElement.scrollWidth);
  if (scrollWidth > width) problems.add(`${scrollWidth} pixels wide`);
  if (width === WIDTHS[0] && scheme === "light") {
    const measures = await measurePage(page, file);
    const { height, nodes, seconds, kilobytes } = measures;
    console.log(`${file}: ${height} px, ${nodes} nodes, ${seconds.toFixed(2)} s, ${kilobytes.toFixed(0)} kB without the largest script`);
    for (const [name, limit] of limits)
      if (!(measures[name] <= Number(limit))) problems.add(`${name}: ${measures[name]} exceeds ${limit}`);
  }
  if (options.screenshots) {
    const name = `${basename(dirname(resolve(file)))}-${basename(file, ".html")}`;
    await page.screenshot({ path: join(options.screenshots, `${name}-${width}-${scheme}.png`), fullPage: true });
    if (width === WIDTHS[0] && scheme === "light") await page.pdf({ path: join(options.screenshots, `${name}.pdf`), format: "A4" });
  }
  await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
  const { violations } = await page.evaluate("axe.run()");
  for (const { id, nodes } of violations) problems.add(`axe: ${id} (${nodes.length}): ${nodes[0].html.slice(0, 160)}`);
  await page.close();
  return [...problems];
}

let nProblems = 0;
for (const file of files) for (const width of WIDTHS) for (const scheme of ["light", "dark"]) {
  const problems = await checkPage(file, width, scheme);
  nProblems += problems.length;
  for (const problem of problems) console.log(`${file} (${width}, ${scheme}): ${problem}`);
}
console.log(`${files.length} pages, ${nProblems} problems`);
await browser.close();
process.exit(nProblems ? 1 : 0);
