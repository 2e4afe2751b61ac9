// Keeps the page as it is now: the server sends the parts that have changed, as it
// renders them, and times are counted on. Without this file the page is complete,
// and as old as its last load.
"use strict";
(() => {
	const live = document.getElementById("live");
	if (!live || !window.EventSource) return;

	let source, again, failures = 0, asOf = Date.now();

	// relative says the same as text.go.
	const relative = (then, now) => {
		const d = (now - then) / 1000, past = d >= 0, s = Math.abs(d);
		const word = (n, unit) => past ? `${n} ${unit} ago` : `in ${n} ${unit}`;
		if (s < 45) return past ? "just now" : "in a moment";
		if (s < 3600) return word(Math.max(1, Math.floor(s / 60 + .5)), "min");
		if (s < 48 * 3600) return word(Math.floor(s / 3600 + .5), "h");
		return word(Math.floor(s / 86400 + .5), "d");
	};
	// The server's clock, and what has gone by here: clocks of phones are wrong.
	let ahead = 0;
	const now = () => Date.now() + ahead;
	const count = (root) => {
		for (const t of root.querySelectorAll("time[datetime] > .rel")) {
			const then = Date.parse(t.parentNode.getAttribute("datetime"));
			if (Number.isNaN(then)) continue;
			const text = relative(then, now());
			if (t.textContent !== text) t.textContent = text;
		}
	};
	const say = (state, text) => {
		if (live.dataset.state === state) return;
		live.dataset.state = state;
		live.textContent = text;
	};

	// put replaces a part, and keeps what somebody opened, and where they are in it.
	const put = ({ id, html }) => {
		const old = document.getElementById(id);
		const made = document.createElement("template");
		made.innerHTML = html;
		const part = made.content.firstElementChild;
		if (!old || !part) return;
		const opens = part.querySelectorAll("details");
		old.querySelectorAll("details").forEach((d, i) => {
			if (opens[i] && opens[i].dataset.key === d.dataset.key) opens[i].open = d.open;
		});
		const focus = old.contains(document.activeElement) && document.activeElement;
		const key = focus && [...old.querySelectorAll(focus.tagName)].indexOf(focus);
		old.replaceWith(part);
		count(part);
		if (focus) {
			const next = part.querySelectorAll(focus.tagName)[key];
			if (next) next.focus({ preventScroll: true });
		}
	};

	const close = () => {
		if (source) source.close();
		source = undefined;
		clearTimeout(again);
	};
	const open = () => {
		close();
		source = new EventSource("/events");
		source.addEventListener("open", () => { failures = 0; say("on", "live"); });
		source.addEventListener("clock", (e) => { asOf = Date.now(); ahead = Number(e.data) - asOf; });
		source.addEventListener("title", (e) => { document.title = e.data; });
		source.addEventListener("part", (e) => put(JSON.parse(e.data)));
		source.addEventListener("layout", () => location.reload());
		source.addEventListener("error", () => {
			close();
			failures++;
			say("off", `not live since ${new Date(now()).toISOString().slice(11, 16)} UTC`);
			// Twice as long each time, up to a minute, and not all pages at once.
			const wait = Math.min(60, 2 ** Math.min(failures, 6)) * (500 + Math.random() * 500);
			again = setTimeout(open, wait);
		});
	};

	document.addEventListener("visibilitychange", () => {
		// A page that nobody sees holds no connection.
		if (document.hidden) close();
		else if (!source) open();
	});
	addEventListener("pagehide", close);
	addEventListener("pageshow", (e) => { if (e.persisted) open(); });
	setInterval(() => count(document), 15000);
	open();
})();
