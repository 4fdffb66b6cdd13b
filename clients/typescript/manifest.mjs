// Writes the documents that the built client sends, for a server that knows no others: node manifest.mjs
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";

const exported = Object.entries(await import("./dist/generated/documents.js"));
const texts = exported.filter(([name]) => /Document$/.test(name)).map(([, document]) => document.toString());
if (texts.length === 0) {
  throw new Error("the client has no documents");
}
const manifest = Object.fromEntries(texts.map((text) => [`sha256:${createHash("sha256").update(text).digest("hex")}`, text]));
writeFileSync(new URL("dist/trusted-documents.json", import.meta.url), JSON.stringify(manifest, null, 2) + "\n");
