// Opens pages that abstain wrote in Chromium and says what is wrong with them:
//
//   npm install --no-save axe-core puppeteer-core
//   node tools/pages.mjs report/report.html [more.html ...] [--pictures FOLDER]
//
// Each is opened at 1280, 768 and 390 pixels, light and dark: no message on the console, no request, no finding of axe,
// nothing to scroll sideways. With --pictures the page is drawn at each width and printed as PDF. CHROMIUM names the
// browser (/usr/bin/chromium).
import { createRequire } from "node:module";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.cwd(), "package.json"));
const puppeteer = require("puppeteer-core");
const given = process.argv.slice(2);
const at = given.indexOf("--pictures");
const pictures = at < 0 ? "" : given.splice(at, 2)[1];
const WIDTHS = [1280, 768, 390];

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});

// What the browser had to say of a page, which may be some moments after it was loaded.
async function opened(address, width, scheme) {
  const page = await browser.newPage();
  const faults = new Set();
  // The policy of our pages lets no script in, and so not that of axe.
  await page.setBypassCSP(true);
  page.on("console", (message) => ["error", "warn"].includes(message.type()) && faults.add(`console: ${message.text()}`));
  page.on("pageerror", (error) => faults.add(`error: ${error.message}`));
  page.on("request", (request) => /^(data:|blob:)/.test(request.url()) || request.url() === address || faults.add(`request: ${request.url()}`));
  await page.setViewport({ width, height: 900 });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.goto(address, { waitUntil: "load" });
  await new Promise((done) => setTimeout(done, 1500));
  return { page, faults };
}

async function checked(file, width, scheme) {
  const { page, faults } = await opened(pathToFileURL(resolve(file)).href, width, scheme);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  if (wide > width) faults.add(`${wide} pixels wide`);
  if (pictures) await page.screenshot({ path: join(pictures, `${basename(file)}-${width}-${scheme}.png`), fullPage: true });
  if (pictures && width === WIDTHS[0] && scheme === "light") await page.pdf({ path: join(pictures, `${basename(file)}.pdf`), format: "A4" });
  await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
  const { violations } = await page.evaluate("axe.run()");
  for (const found of violations) faults.add(`axe: ${found.id} (${found.nodes.length}): ${found.nodes[0].html.slice(0, 160)}`);
  await page.close();
  return [...faults];
}

let wrong = 0;
for (const file of given) for (const width of WIDTHS) for (const scheme of ["light", "dark"]) {
  const faults = await checked(file, width, scheme);
  wrong += faults.length;
  for (const fault of faults) console.log(`${file} (${width}, ${scheme}): ${fault}`);
}
console.log(`${given.length} pages, ${wrong} faults`);
await browser.close();
process.exit(wrong ? 1 : 0);
