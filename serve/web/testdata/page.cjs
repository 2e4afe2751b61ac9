// Looks at the status page in a real browser. Its one argument is JSON: pages (name
// and URL), live (URL of a page with a run under way, and of what moves it), act
// (URL and token of a page that can be acted from), full (every theme and size of
// every state, and axe on all of them, which is what takes the time), shots (a directory, or nothing). It writes a line of JSON for each
// thing that it looked at.
"use strict";
const input = JSON.parse(process.argv[2]);
const { chromium } = require(input.modules + "/playwright-core");
const axe = require("fs").readFileSync(input.modules + "/axe-core/axe.min.js", "utf8");

const sizes = { desktop: { width: 1280, height: 800 }, phone: { width: 390, height: 844 } };
const say = (name, wrong) => console.log(JSON.stringify({ name, ok: !wrong || wrong.length === 0, detail: wrong && wrong.length ? wrong.join("\n").slice(0, 3000) : undefined }));

// watch notes what the browser complains of, and whom it asks.
const watch = (page, origin) => {
	const wrong = [];
	page.on("console", (m) => { if (m.type() === "error" || m.type() === "warning") wrong.push(`console: ${m.text()}`); });
	page.on("pageerror", (e) => wrong.push(`error: ${e.message}`));
	page.on("request", (r) => { if (!r.url().startsWith(origin) && !r.url().startsWith("data:")) wrong.push(`asks ${r.url()}`); });
	page.on("dialog", (d) => { wrong.push(`dialog: ${d.message()}`); d.dismiss(); });
	return wrong;
};

// inspect is everything that has to hold of any page.
const inspect = async (page, accessible = true) => {
	const wrong = [];
	// The page's own rules forbid scripts that are added to it: axe comes by the debugger.
	if (accessible) await page.evaluate(axe);
	const found = accessible ? (await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }))).violations : [];
	for (const v of found) {
		wrong.push(`axe ${v.id}: ${v.help}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200) + " " + (n.failureSummary || "").slice(0, 300)).join(" | ")}`);
	}
	const wide = await page.evaluate(() => {
		const w = document.documentElement.clientWidth;
		if (document.documentElement.scrollWidth <= w) return "";
		const e = [...document.querySelectorAll("main *, header *")].find((e) => e.getBoundingClientRect().right > w + 1 && !e.closest("pre"));
		return `scrolls sideways: ${document.documentElement.scrollWidth} > ${w}: ${e ? e.outerHTML.slice(0, 200) : ""}`;
	});
	if (wide) wrong.push(wide);
	if (await page.evaluate(() => "pwned" in window)) wrong.push("text of a State was run");
	return wrong;
};

(async () => {
	const browser = await chromium.launch({ executablePath: input.chromium, args: input.flags });
	let n = 0;
	const shot = async (page, name) => { if (input.shots) await page.screenshot({ path: `${input.shots}/${name}.png`, fullPage: true }); };

	for (const [name, url] of Object.entries(input.pages)) {
		const ways = [];
		for (const size of ["desktop", "phone"]) for (const theme of ["light", "dark"]) ways.push([size, theme]);
		for (const [size, theme] of input.full ? ways : [ways[n++ % 4]]) {
			const page = await browser.newPage({ viewport: sizes[size], colorScheme: theme, reducedMotion: "reduce" });
			const wrong = watch(page, new URL(url).origin);
			await page.goto(url, { waitUntil: "load" });
			await page.waitForSelector("#live[data-state=on]", { timeout: 30000 });
			await page.evaluate(() => { for (const d of document.querySelectorAll("details")) d.open = true; });
			// What these three hold, the others hold too; the one that runs is acted from below.
			wrong.push(...await inspect(page, input.full || ["empty", "failed", "stale"].includes(name)));
			await shot(page, `${name}-${size}-${theme}`);
			say(`${name} ${size} ${theme}`, wrong);
			await page.close();
		}
	}

	// Without JavaScript the page says the same.
	for (const [name, url] of Object.entries(input.pages)) {
		if (!input.full && name !== "empty" && name !== "failed") continue;
		const page = await browser.newPage({ javaScriptEnabled: false });
		const wrong = watch(page, new URL(url).origin);
		await page.goto(url);
		const text = await page.locator("main").innerText();
		if (!/alarm/i.test(text) || !/Disk/.test(text)) wrong.push(`the page lacks parts: ${text.slice(0, 200)}`);
		if (await page.getByRole("link", { name: "Refresh" }).count() !== 1) wrong.push("there is no link to refresh");
		say(`${name} without JavaScript`, wrong);
		await page.close();
	}

	// Progress moves without a reload, what was opened stays open, a page that
	// somebody else's server ends comes back.
	{
		const page = await browser.newPage({ viewport: sizes.desktop });
		const wrong = watch(page, new URL(input.live.url).origin);
		await page.goto(input.live.url);
		await page.waitForSelector("#live[data-state=on]");
		await page.evaluate(() => { window.stays = true; });
		const first = page.locator(".slot details").first();
		const was = await first.evaluate((d) => { d.open = !d.open; return d.open; });
		await page.locator(".slot summary").first().focus();
		await page.request.post(input.live.move + "?done=2900000000");
		await page.waitForFunction(() => document.querySelector("#running progress").value === 2900000000, undefined, { timeout: 30000 })
			.catch(() => wrong.push("the progress does not move"));
		await page.request.post(input.live.move + "?version=10.2.0a20991231");
		await page.waitForFunction(() => document.querySelector(".slot .big").textContent.includes("20991231"), undefined, { timeout: 30000 })
			.catch(() => wrong.push("the slot does not change"));
		if (await page.title() !== "▶ rocm-nightly on buildbox") wrong.push(`the title is ${await page.title()}`);
		if (!await page.evaluate(() => window.stays)) wrong.push("the page was loaded again");
		if (await first.evaluate((d) => d.open) !== was) wrong.push("what was opened or closed did not stay so");
		if (!await page.evaluate(() => document.activeElement.matches("summary"))) wrong.push("the focus was lost");
		say("live", wrong);
		await page.close();
	}

	// Everything can be done with the keyboard, with and without JavaScript.
	for (const js of input.full ? [true, false] : [true]) {
		const context = await browser.newContext({ viewport: sizes.desktop, javaScriptEnabled: js });
		const page = await context.newPage();
		const wrong = watch(page, new URL(input.act.url).origin);
		const tabTo = async (name) => {
			for (let i = 0; i < 150; i++) {
				await page.keyboard.press("Tab");
				const at = await page.evaluate(() => { const e = document.activeElement; return e && (e.getAttribute("aria-label") || e.innerText); });
				if (at === name) return;
			}
			wrong.push(`no way by keyboard to ${name}`);
		};
		const enter = async () => { await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]); };
		await page.goto(input.act.url);
		await page.keyboard.press("Tab");
		if (await page.locator(":focus").innerText() !== "Skip to the content") wrong.push("the first stop is not the skip link");
		await tabTo("Sign in");
		await enter();
		if (js) { wrong.push(...await inspect(page)); await shot(page, "login"); }
		await page.locator("#token").focus();
		await page.keyboard.type("not the token at all");
		await enter();
		if (await page.getByRole("alert").count() !== 1) wrong.push("a wrong token is not refused");
		await page.locator("#token").focus();
		await page.keyboard.type(input.act.token);
		await enter();
		await tabTo("Run now: update");
		await enter();
		if (!/Done: update was told to begin/.test(await page.locator(".flash").innerText())) wrong.push("run: not said to be done");
		if (js) { wrong.push(...await inspect(page)); await shot(page, "signed-in"); }
		await tabTo("Roll back: nightly-gfx1151");
		await enter();
		if (js) { wrong.push(...await inspect(page)); await shot(page, "confirm"); }
		await page.getByRole("button", { name: /^Roll back/ }).focus();
		await enter();
		if (!/Done: nightly-gfx1151 was rolled back/.test(await page.locator(".flash").innerText())) wrong.push("roll back: not said to be done");
		await page.locator("text=Use and hold").first().focus();
		await enter();
		await page.getByRole("button", { name: /^Use / }).focus();
		await enter();
		if (!/held there/.test(await page.locator(".flash").innerText())) wrong.push("use: not said to be done");
		await page.getByRole("button", { name: /^Sign out/ }).focus();
		await enter();
		if (await page.getByRole("button", { name: /Run now/ }).count()) wrong.push("still signed in");
		// A wrong token is answered with 403, which the browser notes.
		say(`acting ${js ? "with" : "without"} JavaScript`, wrong.filter((w) => !/status of 403/.test(w)));
		await context.close();
	}

	// Phones signed in, and print.
	{
		const context = await browser.newContext({ viewport: sizes.phone, colorScheme: "dark" });
		const page = await context.newPage();
		const wrong = watch(page, new URL(input.act.url).origin);
		await page.goto(input.act.url + "/login");
		await page.locator("#token").fill(input.act.token);
		await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: "Sign in" }).click()]);
		wrong.push(...await inspect(page, input.full));
		await shot(page, "signed-in-phone");
		await page.emulateMedia({ media: "print" });
		if (await page.getByRole("button", { name: /Run now/ }).first().isVisible()) wrong.push("buttons are printed");
		say("signed in on a phone, and printed", wrong);
		await context.close();
	}
	await browser.close();
})().catch((e) => { console.error(e); process.exit(1); });
