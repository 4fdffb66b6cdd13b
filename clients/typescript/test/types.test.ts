import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";

// With skipLibCheck: false, so that the package's own declarations are held to it too.
for (const consumer of ["node", "browser"]) {
  test(`a strict program for the ${consumer} compiles against the declarations`, () => {
    try {
      execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", "-p", `test/consumers/${consumer}`], { encoding: "utf8" });
    } catch (error) {
      assert.fail((error as { stdout: string }).stdout);
    }
  });
}
