import assert from "node:assert/strict";
import { test } from "node:test";

import { pause, retryAfter, sleep, withDefaults } from "../src/retry.js";

test("pauses grow to the cap, between half of the bound and all of it", () => {
  const r = withDefaults({ baseMs: 100, capMs: 1_000 });
  assert.deepEqual([0, 1, 2, 3, 4, 100].map((n) => pause(n, r, () => 1)), [100, 200, 400, 800, 1_000, 1_000]);
  assert.deepEqual([0, 4].map((n) => pause(n, r, () => 0)), [50, 500]);
});

test("Retry-After is seconds or a date", () => {
  const now = Date.parse("Mon, 30 Nov 2026 12:00:00 GMT");
  assert.equal(retryAfter("120", now), 120_000);
  assert.equal(retryAfter("Mon, 30 Nov 2026 12:00:30 GMT", now), 30_000);
  assert.equal(retryAfter("Mon, 30 Nov 2026 11:00:00 GMT", now), 0);
  for (const value of [null, "", "soon", "-1", "1.5"]) {
    assert.equal(retryAfter(value, now), undefined, String(value));
  }
});

test("a pause ends with its signal", async () => {
  const stop = new AbortController();
  const sleeping = sleep(60_000, stop.signal);
  stop.abort(new Error("stopped"));
  await assert.rejects(sleeping, /stopped/);
  await assert.rejects(sleep(60_000, stop.signal), /stopped/);
});
