// The audits of GraphQL over HTTP. A SHOULD that is not kept fails as a MUST does.
import { auditServer } from "graphql-http";

import { urls } from "./scenario.mjs";

const counts = {};
const broken = [];
for (const result of await auditServer({ url: urls[0] })) {
  const level = result.name.split(" ")[0];
  counts[level] ??= { ok: 0, all: 0 };
  counts[level].all++;
  if (result.status === "ok") {
    counts[level].ok++;
  } else {
    broken.push({ level, id: result.id, name: result.name, reason: result.reason });
  }
}
console.log(JSON.stringify({ counts, broken }));
